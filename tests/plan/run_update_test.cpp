// The update in a step's time, by optimizer and by share; HFU by convention; long sequences at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/optim/muon.h"
#include "brrr/plan/cluster/run_question.h"
#include "brrr/plan/cluster/step_memory.h"
#include "brrr/runtime/stages.h"
#include "brrr/train/setup.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr double kParameters = 8'030'261'248;

plan::RunQuestion small_step(const char* optimizer) {
  plan::RunQuestion q;
  q.model = model_preset("llama3-8b");
  q.tokens = 1e12;
  q.gpu = "h200", q.count = 8;
  q.seq = 2048, q.global_batch = 8;
  q.recompute = compiler::RematPolicy::full;
  q.layout.zero = 1;
  q.optimizer = optimizer;
  return q;
}

double at_copy_rate(double bytes) { return bytes / plan::copy_rate(hardware::find_gpu("h200")); }

// Clipping reads gradients, the update reads them again with master weights and states, and writes these and a copy in
// 16 bits: 4 + 4 + 2 (4 + 8) + 2 = 34 bytes for AdamW, over eight devices.
TEST(RunUpdate, IsPricedByTheBytesOfItsOptimizer) {
  const std::pair<const char*, double> bytes[] = {
      {"adamw", 34}, {"adam", 34},      {"sgd", 26},        {"momentum", 26},    {"adagrad", 26},
      {"lion", 26},  {"adamw8bit", 22}, {"adamw-bf16", 20}, {"adafactor", 18.04}};
  const plan::RunAnswer base = plan::answer(small_step("adamw"));
  for (const auto& [name, each] : bytes) {
    EXPECT_DOUBLE_EQ(plan::update_bytes(compiler::Precision::bf16_mixed, name), each) << name;
    const plan::RunAnswer a = plan::answer(small_step(name));
    const double expected = at_copy_rate(each * kParameters / 8);
    EXPECT_NEAR(a.update_seconds, expected, 0.02 * expected) << name;
    EXPECT_NEAR(a.step_seconds - base.step_seconds, a.update_seconds - base.update_seconds, 1e-9)
        << name;
    EXPECT_THAT(a.assumptions, Contains(HasSubstr(join_text("update by ", name)))) << name;
  }
  EXPECT_DOUBLE_EQ(plan::update_bytes(compiler::Precision::f32, "adamw"), 32);
  EXPECT_THAT(error_of([] { plan::answer(small_step("adamz")); }), HasSubstr("adafactor"));
}

TEST(RunUpdate, IsSharedOutByZero) {
  plan::RunQuestion q = small_step("adamw");
  const double shared = plan::answer(q).update_seconds;
  q.layout.zero = 0;
  EXPECT_NEAR(plan::answer(q).update_seconds, 8 * shared, 1e-9);
  q.layout.pp = 8, q.global_batch = 8;
  EXPECT_NEAR(plan::answer(q).update_seconds, shared, 1e-9)
      << "a stage has an eighth of the layers";
}

// Each device updates its own experts and all of the rest.
TEST(RunUpdate, OfExpertsIsThatOfTheirDevice) {
  plan::RunQuestion q = small_step("adamw");
  q.model = model_preset("mixtral-8x7b");
  q.layout.zero = 0;
  const double all = plan::answer(q).update_seconds;
  q.layout.ep = 8;
  const double experts = 32.0 * 8 * 3 * 4096 * 14336, parameters = 46'702'792'704.0;
  EXPECT_NEAR(plan::answer(q).update_seconds / all, 1 - experts / parameters * 7 / 8, 1e-6);
  q.layout.zero = 1;
  EXPECT_NEAR(plan::answer(q).update_seconds, all / 8, 1e-9);
}

// Five Newton-Schulz steps of a matrix n <= m: 5 (4 n^2 m + 2 n^3) FLOPs. The graph has them, and they are the time.
TEST(RunUpdate, MuonsIsThatOfItsProducts) {
  LlamaConfig config = llama_preset("llama3-8b");
  config.layers = 1;
  training::StepSpec spec = training::on_paper(training::default_step(config, 1, 128));
  spec.optimizer = "muon";
  const training::TrainingParts parts = training::make_parts(spec);
  double expected = 0, counted = 0;
  for (const NamedTensor& p : parts.model->named_parameters()) {
    if (!is_hidden_matrix(p)) continue;
    const double n = static_cast<double>(std::min(p.tensor.dim(0), p.tensor.dim(1))),
                 m = static_cast<double>(std::max(p.tensor.dim(0), p.tensor.dim(1)));
    expected += 5 * (4 * n * n * m + 2 * n * n * n);
  }
  const graph::Graph graph = parts.step->trace(training::make_batch(spec));
  for (const graph::Node& node : graph.nodes) {
    if (node.phase == graph::Phase::update && node.op->kind == OpKind::contraction)
      counted += static_cast<double>(graph::cost_of(graph, node).flops);
  }
  EXPECT_EQ(counted, expected);
  EXPECT_NEAR(expected, 2.08e13, 0.01e13) << "20.8 TFLOP a layer of Llama-3 8B";
  // 32 layers over eight devices at the best rate of a product, 764 TFLOP/s, and what lies between the products.
  const double products = 32 * expected / 8 / 764e12;
  const plan::RunAnswer a = plan::answer(small_step("muon"));
  EXPECT_GT(a.update_seconds, products);
  EXPECT_LT(a.update_seconds, 1.6 * products);
  EXPECT_GT(a.step_seconds, plan::answer(small_step("adamw")).step_seconds + 0.9 * products);
}

// A matrix is made orthogonal as a whole: tensor parallelism shares matrices out and does not make them smaller.
TEST(RunUpdate, MuonsIsOfWholeMatrices) {
  plan::RunQuestion q = small_step("muon");
  q.layout.zero = 0;
  const double whole = plan::answer(q).update_seconds;
  q.layout.tp = 8;
  EXPECT_NEAR(plan::answer(q).update_seconds, whole / 8, 1e-9);
}

// Micro-batches and the update are bound each by its own: AdamW's bytes are memory's, Muon's products are compute's.
TEST(RunUpdate, IsInTheRegimeOfItsKernels) {
  const plan::RunAnswer sgd = plan::answer(small_step("sgd")),
                        adamw = plan::answer(small_step("adamw")),
                        muon = plan::answer(small_step("muon"));
  EXPECT_NEAR(adamw.bandwidth_seconds - sgd.bandwidth_seconds,
              adamw.update_seconds - sgd.update_seconds, 1e-4);
  EXPECT_NEAR(adamw.compute_seconds, sgd.compute_seconds, 1e-4);
  EXPECT_GT(muon.compute_seconds - adamw.compute_seconds, 0.75 * muon.update_seconds);
}

// HFU and MFU count the same attention: at 131,072 tokens the second run of layers is a third less a head.
TEST(RunAnswer, HfuIsOfTheConventionOfItsMfu) {
  plan::RunQuestion q;
  q.model = model_preset("llama3-8b");
  q.tokens = 1e11;
  q.gpu = "h100", q.count = 16;
  q.seq = 131072, q.global_batch = 16;
  q.layout.cp = 16;
  q.recompute = compiler::RematPolicy::full;
  const double products = kParameters - 128256.0 * 4096 - 65 * 4096, head = 2.0 * 128256 * 4096,
               attention = 4.0 * 32 * 4096 * 131073 / 2;
  const plan::RunAnswer exact = plan::answer(q);
  EXPECT_NEAR(exact.hfu / exact.mfu,
              1 + (2 * products - head + attention) / (6 * products + 3 * attention), 1e-6);
  q.convention = plan::Convention::megatron;
  const plan::RunAnswer square = plan::answer(q);
  const double all = 4.0 * 32 * 4096 * 131072;
  EXPECT_NEAR(square.hfu / square.mfu, 1 + (2 * products - head + all) / (6 * products + 3 * all),
              1e-6);
}

// A head in hundreds of chunks is priced by fewer: seconds to half a per cent, and memory to the byte.
TEST(ModelCost, ManyChunksOfAHeadArePricedByFew) {
  LlamaConfig config = llama_preset("llama3-8b");
  config.layers = 2;
  config.context = 1 << 21;
  const hardware::Rates rates =
      plan::gpu_rates(hardware::find_gpu("h100"), compiler::Precision::bf16_mixed);
  const plan::StepCost few = plan::traced_cost(config, {.seq = config.context}, rates);
  training::StepSpec spec = training::on_paper(training::default_step(config, 1, config.context));
  spec.pipeline.precision.policy = compiler::Precision::bf16_mixed;
  spec.pipeline.remat.policy = compiler::RematPolicy::none;
  const runtime::PlannedProgram all = training::plan_step(spec);
  EXPECT_LT(few.kernels, 0.5 * static_cast<double>(all.kernels.kernels.size())) << "512 chunks";
  double seconds = 0;
  for (const cost::KernelPrediction& kernel : cost::predict(all.kernels, all.plan, rates).kernels)
    seconds += kernel.seconds();
  EXPECT_NEAR(few.seconds() + few.update_seconds, seconds, 0.005 * seconds);
  const plan::StepMemory memory = plan::step_memory(all, config.vocab);
  EXPECT_EQ(few.logits, static_cast<double>(memory.logits)) << "of one usual chunk";
  EXPECT_EQ(few.activations, static_cast<double>(memory.activations));
}

// Sizes that made graphs of tens of thousands of kernels, or loops over all tokens.
TEST(RunAnswer, LongSequencesAndLargeBatchesAreCounted) {
  plan::RunQuestion q;
  q.model = model_preset("llama3-8b");
  q.tokens = 1e12;
  q.gpu = "h100", q.count = 8;
  q.seq = 16'000'000;
  const plan::RunAnswer counted = plan::answer(q);
  const double pairs = 8e6 + 0.5, exact = 6 * counted.facts.products + 12 * 32 * 4096.0 * pairs;
  EXPECT_NEAR(counted.flops_per_token, exact, 1e-6 * exact);
  q.seq = 8192, q.micro_batch = 10'000;
  EXPECT_GT(plan::answer(q).step_seconds, 1000);
  q.recompute = compiler::RematPolicy::selective, q.micro_batch = 4000;
  EXPECT_GT(plan::answer(q).step_seconds, 400) << "a cut whose seconds are many";
  q.micro_batch = 10'000'000'000;
  EXPECT_THAT(error_of([&] { plan::answer(q); }), HasSubstr("at most"));
}

}  // namespace
}  // namespace brrr
