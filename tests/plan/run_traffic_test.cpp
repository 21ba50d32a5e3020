// What devices send where layers run again and where experts have fewer copies than the rest.
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/plan/cluster/run_question.h"
#include "plan/run_of.h"

namespace brrr {
namespace {

plan::RunQuestion sequences_of(const char* model, int64_t count, int64_t seq) {
  plan::RunQuestion q = run_of(model, "h100", count);
  q.seq = seq, q.global_batch = count;
  return q;
}

// Keys and values go round forward, again backward with their gradients behind them, and once more where attention runs
// again: 3 and 4 times 2 b (s / c) k d elements, c - 1 hops.
TEST(RunTraffic, KeysGoRoundOnceMoreWhereLayersRunAgain) {
  plan::RunQuestion q = sequences_of("llama3-8b", 16, 131072);
  q.layout.cp = 16;
  const double keys = 2.0 * 131072 / 16 * 8 * 128 * 2 * 15 * 32 * 16;  // bytes, hops, layers, micro
  EXPECT_NEAR(plan::answer(q).traffic.context, 3 * keys, 1);
  q.recompute = compiler::RematPolicy::full;
  EXPECT_NEAR(plan::answer(q).traffic.context, 4 * keys, 1);
  q.recompute = compiler::RematPolicy::selective;
  EXPECT_NEAR(plan::answer(q).traffic.context, 3 * keys, 1) << "fused attention keeps its result";
}

// Tokens go to experts and back, forward and backward, and forward once more: 4 and 6 all-to-alls of b s K h.
TEST(RunTraffic, TokensGoToExpertsOnceMoreWhereLayersRunAgain) {
  plan::RunQuestion q = sequences_of("mixtral-8x7b", 64, 4096);
  q.layout.ep = 8;
  const double sent = 4096.0 * 4096 * 2 * 2 * 7 / 8 * 32;  // b s h, bytes, K, (e - 1) / e, layers
  EXPECT_NEAR(plan::answer(q).traffic.expert, 4 * sent, 1);
  q.recompute = compiler::RematPolicy::full;
  EXPECT_NEAR(plan::answer(q).traffic.expert, 6 * sent, 1);
}

// An expert has count / ep copies: 4 (dense 63 / 64 + experts / 8 * 7 / 8) bytes, 26.05 GB and not 28.52.
TEST(RunTraffic, GradientsOfExpertsGoRoundTheirCopies) {
  plan::RunQuestion q = sequences_of("mixtral-8x7b", 64, 4096);
  q.layout.ep = 8;
  const double experts = 32.0 * 8 * 3 * 4096 * 14336, dense = 46'702'792'704.0 - experts;
  const double sent = 4 * (dense * 63 / 64 + experts / 8 * 7 / 8);
  EXPECT_NEAR(sent / 1e9, 26.05, 0.005);
  EXPECT_NEAR(plan::answer(q).traffic.data, sent, 1);
  q.layout.zero = 3;
  EXPECT_NEAR(plan::answer(q).traffic.data, 1.5 * sent, 1);
  q.count = q.global_batch = 8;
  q.layout.zero = 0;
  EXPECT_NEAR(plan::answer(q).traffic.data, 4 * dense * 7 / 8, 1)
      << "one copy of an expert: nothing";
}

// A device that keeps its share of the gradients alone scatters them after every micro-batch, ZeRO-1 once a step.
TEST(RunTraffic, ZeRO2ScattersGradientsOfEveryMicroBatch) {
  plan::RunQuestion q = sequences_of("llama3-8b", 8, 4096);
  const double crossing = 8'030'261'248.0 * 7 / 8;
  for (const int64_t micro_batches : {1, 4, 16}) {
    q.global_batch = 8 * micro_batches;
    const auto m = static_cast<double>(micro_batches);
    const auto sent = [&](int zero) {
      q.layout.zero = zero;
      return plan::answer(q).traffic.data;
    };
    EXPECT_NEAR(sent(0), 4 * crossing, 1);
    EXPECT_NEAR(sent(1), 4 * crossing, 1);
    EXPECT_NEAR(sent(2), (2 * m + 2) * crossing, 1) << micro_batches;
    EXPECT_NEAR(sent(3), 6 * m * crossing, 1);
  }
  q.grads = plan::GradType::f32, q.layout.zero = 2;
  EXPECT_NEAR(plan::answer(q).traffic.data, (4 * 16 + 2) * crossing, 1)
      << "in the type of the sums";
  q.system.hides_data = false;
  const plan::RunTraffic seen = plan::answer(q).traffic;
  EXPECT_NEAR(seen.exposed_seconds, seen.data_seconds, 1e-12);
  q.system.hides_data = true;
  EXPECT_EQ(plan::answer(q).traffic.exposed_seconds, 0) << "behind the backward part of each";
}

// 8 key heads over 16 tensor-parallel devices: each has one, and sends one.
TEST(RunTraffic, KeysThatAreCopiedAreSentWhole) {
  plan::RunQuestion q = sequences_of("llama3-405b", 32, 131072);
  q.node_size = 16, q.global_batch = 1;
  q.layout.tp = 16, q.layout.cp = 2;
  const double keys = 2.0 * 131072 / 2 * 1 * 128 * 2 * 126;  // of one head, bytes, layers
  EXPECT_NEAR(plan::answer(q).traffic.context, 3 * keys, 1);
}

// Beyond a node a token goes once to each of the nodes that its experts are on, 8 (1 - (7/8)^8) of 8 on average, 7/8 of
// them others; a node's own links bring it to the experts. A framework sends a copy for each of the 8 experts.
TEST(RunTraffic, ATokenCrossesTheNetworkOnceForANode) {
  plan::RunQuestion q = sequences_of("deepseek-v3", 64, 4096);
  q.global_batch = 256;
  q.layout.ep = 64;
  const double elements = 4096.0 * 7168 * 58 * 4, nodes = 8 * (1 - std::pow(7.0 / 8, 8));
  const plan::RunTraffic tuned = plan::answer(q).traffic;
  EXPECT_NEAR(tuned.expert, 8 * elements * (nodes * 7 / 8 + 8 * 7.0 / 8), 1e3);
  EXPECT_NEAR(tuned.expert_seconds, 8 * elements * nodes * 7 / 8 / 48e9, 1e-6);
  q.precision = compiler::Precision::fp8_mixed;
  EXPECT_NEAR(plan::answer(q).traffic.expert, tuned.expert * 6 / 8, 1e3) << "there 1 byte, back 2";
  q.precision = compiler::Precision::bf16_mixed;
  q.system.hides_experts = false;
  const plan::RunTraffic waits = plan::answer(q).traffic;
  EXPECT_NEAR(waits.expert, 8 * elements * 8 * 63 / 64, 1e3);
  EXPECT_NEAR(waits.expert_seconds, 8 * elements * 8 * 7 / 8 / 48e9, 1e-6);
  EXPECT_GE(waits.exposed_seconds, waits.expert_seconds);
}

// Of four micro-batches the first has none to travel beside; the others hold 20 of 132 multiprocessors.
TEST(RunTraffic, TokensTravelBesideAnotherMicroBatch) {
  plan::RunQuestion q = sequences_of("mixtral-8x7b", 8, 4096);
  q.global_batch = 32, q.layout.ep = 8;
  const plan::RunTraffic four = plan::answer(q).traffic;
  EXPECT_NEAR(four.exposed_seconds, four.expert_seconds * (0.25 + 0.75 * 20 / 132), 1e-9);
  q.global_batch = 8;
  const plan::RunTraffic one = plan::answer(q).traffic;
  EXPECT_NEAR(one.exposed_seconds, one.expert_seconds, 1e-9);
  q.global_batch = 32, q.system.framework = plan::Framework::compiled;
  EXPECT_GE(plan::answer(q).traffic.exposed_seconds, plan::answer(q).traffic.expert_seconds);
}

}  // namespace
}  // namespace brrr
