// What belongs to the weights of experts falls as 1 / ep, and what belongs to tokens stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/plan/cluster/run_question.h"
#include "plan/run_of.h"

namespace brrr {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr double kExperts = 256.0 * 3 * 7168 * 2048;  // parameters of a layer of DeepSeek-V3

plan::StepCost mixed_layer(compiler::Precision precision, int64_t ep, bool fuse = true) {
  const plan::CostOptions options{
      .seq = 4096, .precision = precision, .fuse = fuse, .expert_devices = ep};
  const hardware::Rates rates = plan::gpu_rates(hardware::find_gpu("h200"), precision);
  return plan::model_cost(model_preset("deepseek-v3"), options, rates).layers[1].one;
}

plan::RunQuestion mixture_of(const char* model, const char* gpu, int64_t count, int64_t ep) {
  plan::RunQuestion q = run_of(model, gpu, count);
  q.seq = 4096, q.global_batch = 8 * count;
  q.layout.ep = ep, q.layout.zero = 1;
  return q;
}

TEST(ExpertParallel, ProductsOfTokensStay) {
  for (const compiler::Precision precision :
       {compiler::Precision::bf16_mixed, compiler::Precision::fp8_mixed}) {
    const plan::StepCost whole = mixed_layer(precision, 1);
    EXPECT_EQ(whole.experts, kExperts);
    for (const int64_t ep : {8, 64}) {
      const plan::StepCost share = mixed_layer(precision, ep);
      EXPECT_EQ(share.products, whole.products) << "as many rows, in taller products";
      EXPECT_EQ(share.attention, whole.attention);
      EXPECT_EQ(share.matrices, whole.matrices) << "the router is whole";
      EXPECT_EQ(share.experts * static_cast<double>(ep), kExperts);
    }
  }
}

// fp8 keeps its copies of weights, a byte a parameter: 11.3 GB of a layer's experts, 0.18 GB of a 64th of them.
TEST(ExpertParallel, KeptCopiesOfWeightsFallWithTheExperts) {
  const auto kept = [](compiler::Precision precision, int64_t ep) {
    return mixed_layer(precision, ep).activations;
  };
  using enum compiler::Precision;
  EXPECT_EQ(kept(fp8_mixed, 1) - kept(fp8_mixed, 8), kExperts * 7 / 8);
  EXPECT_EQ(kept(fp8_mixed, 8) - kept(fp8_mixed, 64), kExperts * 7 / 64);
  EXPECT_EQ(kept(bf16_mixed, 8), kept(bf16_mixed, 1)) << "copies in 16 bits are states";
  EXPECT_EQ(kept(bf16_mixed, 64), kept(bf16_mixed, 1));
}

// Bytes between kernels and memory are a + b / ep. In bf16 b is 8 a parameter: it is read forward and backward, 2 + 2, and
// its gradient written, 4. In fp8 what is fused depends on shapes, so ops run one by one.
TEST(ExpertParallel, TrafficOfWeightsFallsWithTheExperts) {
  for (const compiler::Precision precision :
       {compiler::Precision::bf16_mixed, compiler::Precision::fp8_mixed}) {
    const bool fuse = precision == compiler::Precision::bf16_mixed;
    const auto traffic = [&](int64_t ep) {
      const plan::StepCost layer = mixed_layer(precision, ep, fuse);
      return layer.forward_traffic + layer.backward_traffic;
    };
    const double of_weights = (traffic(1) - traffic(8)) / (7.0 / 8);
    EXPECT_NEAR((traffic(8) - traffic(64)) / (7.0 / 64), of_weights, 1e-6 * of_weights);
    if (fuse)
      EXPECT_EQ(of_weights, 8 * kExperts);
    else
      EXPECT_GE(of_weights, (9 + 1 + 1 + 4) * kExperts) << of_weights / kExperts;
  }
}

// Forward kernels that are no products: in fp8 the largest value, 4 bytes of a weight, and its copy, 4 + 1.
TEST(ExpertParallel, SecondsOfQuantisingFallWithTheExperts) {
  const auto others = [](int64_t ep) {
    return mixed_layer(compiler::Precision::fp8_mixed, ep).forward_other_seconds;
  };
  const double of_weights = (others(1) - others(8)) / (7.0 / 8);
  EXPECT_NEAR((others(8) - others(64)) / (7.0 / 64), of_weights, 0.05 * of_weights);
  EXPECT_NEAR(of_weights * plan::copy_rate(hardware::find_gpu("h200")) / kExperts, 9, 0.4);
}

TEST(ExpertParallel, RunsInFp8AreNoSlower) {
  for (const int64_t ep : {8, 64}) {
    for (const compiler::RematPolicy policy :
         {compiler::RematPolicy::none, compiler::RematPolicy::full}) {
      plan::RunQuestion q = mixture_of("deepseek-v3", "h200", 2048, ep);
      q.recompute = policy;
      const plan::RunAnswer bf16 = plan::answer(q);
      q.precision = compiler::Precision::fp8_mixed;
      const plan::RunAnswer fp8 = plan::answer(q);
      EXPECT_LT(fp8.step_seconds, bf16.step_seconds) << ep;
      // Logits before they are scaled, and kept copies of experts where nothing runs again.
      const double logits = 4.0 * 4096 * 129280, experts = 58 * kExperts / static_cast<double>(ep);
      const double more = logits + (policy == compiler::RematPolicy::none ? experts : 0);
      EXPECT_LT(fp8.memory.total(), bf16.memory.total() + more) << ep;
      EXPECT_THAT(fp8.assumptions, Contains(HasSubstr("to copies in 8 bits")));
      EXPECT_THAT(bf16.assumptions, Not(Contains(HasSubstr("to copies in 8 bits"))));
      EXPECT_THAT(fp8.assumptions,
                  Contains(HasSubstr(join_text("1/", ep, " of a layer's experts"))));
    }
  }
}

// Every copy of an expert is updated once, wherever it lies.
TEST(ExpertParallel, UpdatesAreSharedOutAsBefore) {
  for (const char* optimizer : {"adamw", "muon"}) {
    plan::RunQuestion q = mixture_of("mixtral-8x7b", "h100", 64, 1);
    q.optimizer = optimizer;
    const double apart = plan::answer(q).update_seconds;
    q.layout.ep = 8;
    EXPECT_EQ(plan::answer(q).update_seconds, apart) << optimizer;
  }
}

}  // namespace
}  // namespace brrr
