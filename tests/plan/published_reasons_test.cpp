// What published runs are said to be held back by, put to the test: each effect switched off or on must move the
// prediction as its reason says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "brrr/plan/inference.h"
#include "brrr/plan/published/published_run.h"

namespace brrr {
namespace {

plan::PublishedRun find(const std::vector<plan::PublishedRun>& runs, std::string_view what) {
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [&](const plan::PublishedRun& run) { return run.what == what; });
  invariant(found != runs.end(), "no run is \"", what, "\"");
  return *found;
}

double error_of(const plan::PublishedRun& run) { return plan::case_of(run).error(); }

// Two speeds four times apart follow from one description of the system, and neither without it.
TEST(PublishedReasons, GathersOfZero3WereWaitedFor) {
  for (const char* what :
       {"ZeRO-3, micro-batch 4, 384 A100", "ZeRO-3, micro-batch 1, 1536 A100: the collapse"}) {
    plan::PublishedRun run = find(plan::megatron_runs(), what);
    EXPECT_LT(std::abs(error_of(run)), 0.15) << what;
    run.system.hides_data = true;
    EXPECT_GT(error_of(run), 0.25) << what;
  }
  plan::PublishedRun flat =
      find(plan::megatron_runs(), "ZeRO-3, micro-batch 1, 1536 A100: the collapse");
  flat.system.gathers_of_layer = 1;
  EXPECT_GT(error_of(flat), 0.15)
      << "a ring over 1536 devices waits for its hops, four times a layer";
}

// The share of 2021 is one number for six runs, from a seventh; without it all are too fast.
TEST(PublishedReasons, SoftwareOf2021WasSlowerByOneShare) {
  double share = 0;
  int runs = 0;
  for (plan::PublishedRun run : plan::megatron_runs()) {
    if (run.claim.software == 1) continue;
    share = run.claim.software;
    EXPECT_LT(std::abs(error_of(run)), 0.15) << run.what;
    run.claim.software = 1;
    EXPECT_GT(error_of(run), 0.10) << run.what;
    ++runs;
  }
  EXPECT_EQ(runs, 6);
  // By Narayanan's own formula, 96 B s L h^2 (1 + s / 6h + V / 16 L h), for the step of 49.05 s: 180 TFLOP/s of one
  // device in 2022 beside the 163 of 2021.
  const double B = 280, s = 2048, L = 105, h = 20480, V = 51200;
  const double flops = 96 * B * s * L * h * h * (1 + s / (6 * h) + V / (16 * L * h));
  EXPECT_NEAR(share, 163e12 / (flops / (280 * 49.05)), 0.005);
}

TEST(PublishedReasons, AttentionOfThenWroteItsScores) {
  for (const plan::PublishedRun& run : plan::megatron_runs()) {
    plan::PublishedRun fused = run;
    fused.system.attention = plan::AttentionMethod::current;
    EXPECT_LT(plan::answer_of(fused).step_seconds, plan::answer_of(run).step_seconds) << run.what;
  }
  plan::PublishedRun step = find(plan::megatron_runs(), "22B, TP8, full recomputation: a step");
  step.system.attention = plan::AttentionMethod::current;
  EXPECT_LT(error_of(step), -0.2)
      << "with the kernels of today the published second is not understood";
}

// What PyTorch does beside the model's graph is counted, and without it the runs would be too fast.
TEST(PublishedReasons, EagerRunsPayForLossAndCopies) {
  for (const char* what : {"MPT-7B, FSDP, 8 H100", "MPT-125M, 8 A100-80"}) {
    plan::PublishedRun run = find(plan::eager_runs(), what);
    EXPECT_LT(std::abs(error_of(run)), 0.06) << what;
    const double eager = plan::case_of(run).predicted;
    run.system.framework = plan::Framework::tuned;
    run.system.fuse = false;
    EXPECT_GT(plan::case_of(run).predicted, 1.08 * eager) << what << ": elementwise ops alone";
  }
}

// With one adapter a device the gathers of 512 H100s would be all of the step.
TEST(PublishedReasons, RingsOverWholeNodesUseAllAdapters) {
  plan::PublishedRun run = find(plan::eager_runs(), "MPT-70B, FSDP, recomputed, 512 H100");
  EXPECT_LT(std::abs(error_of(run)), 0.15);
  run.system.node_rings = false;
  EXPECT_LT(error_of(run), -0.08);
  EXPECT_GT(plan::answer_of(run).traffic.exposed_seconds, 1);
}

// At 65,536 tokens attention is most of the work, and the speed hangs on its kernel alone.
TEST(PublishedReasons, LongSequencesHangOnTheAttentionKernel) {
  plan::PublishedRun run = find(plan::eager_runs(), "MPT-7B at 65,536 tokens, recomputed, 8 H100");
  EXPECT_LT(std::abs(error_of(run)), 0.05);
  const double triton = plan::case_of(run).predicted;
  run.system.attention = plan::AttentionMethod::flash2;
  EXPECT_GT(plan::case_of(run).predicted, 1.3 * triton);
  EXPECT_NEAR(plan::answer_of(run).attention_share, 0.564, 0.0005);
}

// Four memories of one run, eager and compiled, over 8 and over 128 ranks, from one list of buffers.
TEST(PublishedReasons, TorchtitansMemoryIsTheSumOfItsBuffers) {
  constexpr double kGiB = 1073741824;
  const auto gib = [&](int64_t ranks, bool compiled) {
    return plan::torchtitan_memory(ranks, compiled).total() / kGiB;
  };
  EXPECT_NEAR(gib(8, true), 77.0, 0.03 * 77.0);
  EXPECT_NEAR(gib(8, false), 82.4, 0.03 * 82.4);
  EXPECT_NEAR(gib(128, true), 62.0, 0.03 * 62.0);
  EXPECT_NEAR(gib(128, false), 67.0, 0.03 * 67.0);
  // Ranks share the states alone, 16 bytes a parameter: A36.
  EXPECT_NEAR(gib(8, true) - gib(128, true), 14.02, 0.01);
  const plan::TorchtitanMemory m = plan::torchtitan_memory(8, false);
  EXPECT_EQ(m.states, 16.0 * 8'030'261'248 / 8);
  EXPECT_EQ(m.logits, 16384.0 * 128256 * 14) << "bf16 once, f32 three times";
  EXPECT_EQ(m.kept - plan::torchtitan_memory(8, true).kept, 32.0 * 16384 * 4096 * 2)
      << "results of the last product of every layer";
  // Each part is more than the band: without any of the large ones the sum would be outside.
  for (const double part : {m.states, m.kept, m.logits, m.gathered})
    EXPECT_GT(part / kGiB, 0.03 * 82.4);
}

// One large run is public with its step and with all its hours; what steps had of them is what another takes.
TEST(PublishedReasons, HoursOfAWholeRunAreStepsOverGoodput) {
  EXPECT_NEAR(plan::bloom_goodput(), 0.90, 0.005);
  plan::PublishedRun run =
      find(plan::eager_runs(), "Llama-2 70B, 2T tokens, steps at BLOOM's goodput");
  EXPECT_EQ(run.claim.kind, plan::CaseClass::predicted);
  EXPECT_LT(std::abs(error_of(run)), 0.15);
  const double with = plan::case_of(run).predicted;
  run.claim.goodput = 1;
  EXPECT_NEAR(plan::case_of(run).predicted / with, plan::bloom_goodput(), 1e-9);
  EXPECT_LT(error_of(run), -0.08) << "steps alone are not the hours that were published";
  // The layout of the 7B is assumed; the 13B, which is no case, follows from the same assumption.
  for (const plan::PublishedRun& other :
       {find(plan::eager_runs(), "Llama-2 7B, 2T tokens, steps at BLOOM's goodput"),
        plan::calibration_run("llama2_13b")})
    EXPECT_LT(std::abs(error_of(other)), 0.10) << other.what;
}

// Hours of Pythia are not explained by goodput: the share of a third size is what both take.
TEST(PublishedReasons, PythiaTakesTheShareOfAThirdSize) {
  const double share = plan::reached_share(plan::calibration_run("pythia_7b"));
  EXPECT_LT(share, 0.75 * plan::bloom_goodput());
  for (const char* what :
       {"Pythia 12B, TP4, 256 A100-40: all hours", "Pythia 1B, 64 A100-40: all hours"}) {
    plan::PublishedRun run = find(plan::eager_runs(), what);
    EXPECT_EQ(run.claim.software, share) << what;
    EXPECT_LT(std::abs(error_of(run)), 0.15) << what;
    run.claim.software = 1;
    EXPECT_LT(error_of(run), -0.25) << what;
  }
}

// It prints whole MiB, cut off. A quarter GiB of them are gradients of scores, which a deterministic backward writes.
TEST(PublishedReasons, LlmqsBuffersAreCountedToTheMiB) {
  for (const plan::PublishedCase& c : plan::memory_cases()) {
    if (c.id != "A28") continue;
    EXPECT_EQ(std::floor(c.predicted), c.published);
  }
}

// The eager run has the machine's share from the compiled one, and what op by op costs from the graph.
TEST(PublishedReasons, EagerTorchtitanIsPredictedBesideTheCompiledOne) {
  const plan::PublishedRun compiled = find(plan::eager_runs(), "compiled");
  EXPECT_EQ(compiled.claim.kind, plan::CaseClass::bound);
  plan::PublishedRun eager = find(plan::eager_runs(), "torchtitan, Llama-3.1-8B, FSDP, eager");
  EXPECT_EQ(eager.claim.software, plan::reached_share(compiled));
  EXPECT_LT(std::abs(error_of(eager)), 0.15);
  eager.system.framework = plan::Framework::compiled;
  EXPECT_NEAR(plan::case_of(eager).predicted, 6667, 1)
      << "without eager's costs it is the compiled run";
}

TEST(PublishedReasons, PowerAndSecondRunsSlowTorchtitan) {
  const plan::PublishedRun run = find(plan::eager_runs(), "compiled");
  plan::PublishedRun full_power = run;
  full_power.gpu = "h100";
  EXPECT_GT(plan::case_of(full_power).predicted, 1.08 * plan::case_of(run).predicted);
  plan::PublishedRun kept = run;
  kept.system.products_again = 0;
  EXPECT_GT(plan::case_of(kept).predicted, 1.05 * plan::case_of(run).predicted);
}

// Launches, the bandwidth that copies reach and all-reduces lie between the bounds on decoding and what was measured.
TEST(PublishedReasons, KernelsLieBetweenTheBoundOnDecodingAndTheMeasurement) {
  struct Row {
    double weight_bytes;
    int64_t count;
    double published;  // tokens a second
  };
  for (const Row& row : {Row{2, 1, 104.9}, Row{1, 1, 155.6},
                         Row{plan::weight_bytes_of("int4"), 1, 196.8}, Row{2, 8, 328.4}}) {
    plan::InferQuestion q{.model = model_preset("llama2-7b"), .gpu = "a100-80"};
    q.context = 1, q.count = row.count, q.weight_bytes = row.weight_bytes;
    const auto kernels = plan::predict(q);
    ASSERT_TRUE(kernels.has_value());
    EXPECT_LT(1 / kernels->decode_seconds, 0.9 * plan::answer(q).tokens_per_second);
    EXPECT_GT(1 / kernels->decode_seconds, row.published);
  }
}

// What is slower on one device is slower on many; all-reduces are what comes on top, and without them both are missed.
TEST(PublishedReasons, DevicesTogetherAreOneDevicesKernelsAndAllReduces) {
  plan::InferQuestion q{.model = model_preset("llama2-7b"), .gpu = "a100-80"};
  q.context = 1, q.count = 8;
  const auto eight = plan::predict(q);
  ASSERT_TRUE(eight.has_value());
  EXPECT_GT(eight->decode_reduce_seconds, 0.3 * eight->decode_seconds);
  q.count = 1;
  EXPECT_EQ(plan::predict(q)->decode_reduce_seconds, 0);
  for (const plan::PublishedCase& c : plan::decoding_cases()) {
    if (c.calibration.empty()) continue;
    EXPECT_EQ(c.kind, plan::CaseClass::predicted) << c.what;
    EXPECT_TRUE(c.holds()) << c.what;
  }
}

// Of the prompt on two devices both shares are needed: kernels as slow as on one device miss it alone, and so do
// all-reduces as slow as in the profile of a token.
TEST(PublishedReasons, APromptOnTwoDevicesIsSlowKernelsAndSlowAllReduces) {
  plan::InferQuestion q{.model = model_preset("llama2-13b"), .gpu = "a100-40"};
  q.context = 512;
  const auto one = plan::predict(q);
  q.count = 2;
  const auto two = plan::predict(q);
  ASSERT_TRUE(one && two);
  const double kernels = two->prefill_seconds - two->prefill_reduce_seconds;
  const double slower = 63.17e-3 / one->prefill_seconds,
               profiled = 40 * 45e-6 / two->decode_reduce_seconds;
  EXPECT_GT(profiled, 2);
  EXPECT_LT(slower * kernels + two->prefill_reduce_seconds, 0.85 * 45.45e-3);
  EXPECT_LT(kernels + profiled * two->prefill_reduce_seconds, 0.87 * 45.45e-3);
  EXPECT_NEAR(slower * kernels + profiled * two->prefill_reduce_seconds, 45.45e-3, 0.15 * 45.45e-3);
}

}  // namespace
}  // namespace brrr
