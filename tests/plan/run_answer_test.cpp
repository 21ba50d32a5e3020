// Plans of runs: the lecture's questions, memory by recipe, communication, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "brrr/plan/budget.h"
#include "brrr/plan/cluster/run_question.h"
#include "brrr/plan/fit/fit.h"
#include "plan/run_of.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::AllOf;
using testing::HasSubstr;

plan::RunQuestion lecture_run() {
  plan::RunQuestion q;
  q.parameters = 70e9;
  q.tokens = 15e12;
  q.gpu = "h100";
  q.count = 1024;
  q.mfu = 0.5;
  return q;
}

TEST(RunAnswer, SeventyBillionOn15TTokensTakes143Point93Days) {
  const plan::RunAnswer a = plan::answer(lecture_run());
  EXPECT_DOUBLE_EQ(a.total_flops, 6.3e24);
  EXPECT_NEAR(a.days, 143.927, 5e-4);
  plan::RunQuestion by_clock = lecture_run();
  by_clock.peak_tflops = hardware::find_gpu("h100").clock->rate().value() / 1e12;
  EXPECT_NEAR(plan::answer(by_clock).days, 143.94, 5e-3);
}

TEST(RunAnswer, GpuHoursCostAndEnergyFollow) {
  plan::RunQuestion q = lecture_run();
  q.price_per_hour = 2;
  q.watts = 1000;
  q.pue = 1.2;
  const plan::RunAnswer a = plan::answer(q);
  EXPECT_NEAR(a.gpu_hours, a.days * 24 * 1024, 1e-3);
  EXPECT_NEAR(a.cost_usd, 2 * a.gpu_hours, 1e-3);
  EXPECT_NEAR(a.energy_kwh, 1.2 * a.gpu_hours, 1e-3);
  q.goodput = 0.5;
  EXPECT_NEAR(plan::answer(q).days, 2 * a.days, 1e-9);
}

TEST(Fit, EightH100sHold40BillionParametersByStates) {
  plan::RunQuestion q;
  q.gpu = "h100";
  q.count = 8;
  q.precision = compiler::Precision::f32;
  EXPECT_DOUBLE_EQ(plan::largest_model_by_states(q), 40e9);
  q.precision = compiler::Precision::bf16_mixed;
  EXPECT_DOUBLE_EQ(plan::largest_model_by_states(q), 40e9) << "2 + 2 + 4 + 8 is 16 bytes, too";
}

TEST(Fit, EightH100sForAWeek) {
  const double available =
      8 * hardware::find_gpu("h100").peak(hardware::Arithmetic::bf16).dense.value() * 7 * 86400;
  EXPECT_NEAR(available, 4.7876e21, 5e17);
  const plan::ComputeOptimal best = plan::compute_optimal(available);
  EXPECT_NEAR(6 * best.parameters * best.tokens, available, 1e-9 * available);
}

TEST(StateRecipe, BytesOfAParameterAreThoseOfTheTable) {
  const auto total = [](compiler::Precision p, const char* optimizer,
                        plan::GradType grads = plan::GradType::as_parameter) {
    return plan::state_recipe(p, optimizer, grads).total();
  };
  EXPECT_EQ(total(compiler::Precision::f32, "sgd"), 12) << "with momentum, as `brrr train` has it";
  EXPECT_EQ(total(compiler::Precision::f32, "momentum"), 12);
  EXPECT_EQ(total(compiler::Precision::f32, "adagrad"), 12);
  EXPECT_EQ(total(compiler::Precision::f32, "adamw"), 16);
  EXPECT_EQ(total(compiler::Precision::bf16_mixed, "adamw"), 16);
  EXPECT_EQ(total(compiler::Precision::bf16_mixed, "adamw", plan::GradType::f32), 18);
  EXPECT_EQ(total(compiler::Precision::bf16_mixed, "adamw8bit"), 10);
  EXPECT_EQ(total(compiler::Precision::bf16_mixed, "lion"), 12);
  EXPECT_EQ(total(compiler::Precision::bf16_mixed, "adamw-bf16"), 8);
  EXPECT_THAT(error_of([&] { total(compiler::Precision::f32, "adamz"); }), HasSubstr("adafactor"));
}

// 7.5B under ZeRO, 16 B a parameter: 31.4, 16.6 and 1.9 GB of 120 on 64 devices (Rajbhandari et al.).
TEST(RunMemory, ZeroIsThatOfThePaper) {
  const auto states = [](int zero, int64_t devices) {
    plan::RunQuestion q = lecture_run();
    q.parameters = 7.5e9;
    q.count = devices;
    q.layout.zero = zero;
    return plan::answer(q).memory.states() / 1e9;
  };
  EXPECT_NEAR(states(0, 64), 120, 1e-9);
  EXPECT_NEAR(states(1, 64), 31.4, 0.05);
  EXPECT_NEAR(states(2, 64), 16.6, 0.05);
  EXPECT_NEAR(states(3, 64), 1.9, 0.05);
  EXPECT_NEAR(states(1, 4), 52.5, 0.05);
  EXPECT_NEAR(states(2, 16), 21.6, 0.05);
  EXPECT_NEAR(states(3, 16), 7.5, 0.05);
}

TEST(RunMemory, PartsAddUpAndShardsDivideStates) {
  plan::RunQuestion q = run_of("llama3-8b", "h100", 8);
  const plan::RunAnswer one = plan::answer(q);
  EXPECT_EQ(one.memory.params, 2.0 * 8'030'261'248);
  EXPECT_EQ(one.memory.optimizer, 8.0 * 8'030'261'248 + 8) << "two moments, the number of the step";
  q.layout.zero = 3;
  EXPECT_EQ(plan::answer(q).memory.states() * 8, one.memory.states());
  q.layout.zero = 0;
  q.layout.tp = 8;
  const plan::RunAnswer cut = plan::answer(q);
  // Norms stay whole on every device.
  EXPECT_NEAR(cut.memory.params * 8, one.memory.params, 0.001 * one.memory.params);
  EXPECT_LT(cut.memory.activations, one.memory.activations / 7);
  EXPECT_FALSE(one.fits);
  EXPECT_THAT(one.binding, HasSubstr("memory"));
}

// Gathers of every micro-batch over the network take longer than the arithmetic that they hide behind: then faster
// products save nothing. Within a node they hide.
TEST(RunBinding, IsWhatWouldShortenTheStep) {
  plan::RunQuestion q = run_of("llama3-8b", "h100", 64);
  q.layout.zero = 3;
  q.recompute = compiler::RematPolicy::selective;
  q.micro_batch = 1, q.seq = 8192, q.global_batch = 512;
  const plan::RunAnswer far = plan::answer(q);
  EXPECT_TRUE(far.fits);
  EXPECT_GT(far.compute_seconds, far.traffic.exposed_seconds);
  EXPECT_THAT(far.binding, HasSubstr("communication"));
  q.count = 8, q.global_batch = 64;
  EXPECT_THAT(plan::answer(q).binding, HasSubstr("compute"));
}

TEST(RunMemory, RecomputationTradesActivationsForFlops) {
  plan::RunQuestion q = run_of("llama3-8b", "h200", 8);
  q.layout.zero = 3;
  const plan::RunAnswer none = plan::answer(q);
  q.recompute = compiler::RematPolicy::full;
  const plan::RunAnswer full = plan::answer(q);
  EXPECT_LT(full.memory.activations, none.memory.activations / 5);
  EXPECT_GT(full.step_seconds, none.step_seconds);
  EXPECT_GT(full.hfu, full.mfu * 1.25);
  EXPECT_NEAR(none.hfu, none.mfu, 0.03);
}

TEST(RunTraffic, IsThatOfTheFormulas) {
  plan::RunQuestion q = run_of("llama3-8b", "h100", 64);
  q.seq = 8192;
  q.global_batch = 64;
  const double n = 8'030'261'248.0;
  EXPECT_NEAR(plan::answer(q).traffic.data, 2 * 2 * n * 63 / 64, 1);
  q.layout.zero = 3;
  EXPECT_NEAR(plan::answer(q).traffic.data, 3 * 2 * n * 63 / 64, 1) << "half as much again";
  q.layout = {.tp = 8, .pp = 2};
  const plan::RunAnswer a = plan::answer(q);
  const double stream = 8192.0 * 4096 * 2;
  EXPECT_EQ(a.micro_batches, 16);
  EXPECT_NEAR(a.traffic.tensor, 8 * stream * 7 / 8 * 16 * 16, 1)
      << "8 b s h (t-1)/t a layer, 16 layers";
  EXPECT_NEAR(a.traffic.bubble, 1.0 / 17, 1e-12);
}

TEST(RunAnswer, PredictsWithoutAnMfuAndSaysHowSure) {
  const plan::RunAnswer a = plan::answer(run_of("gpt2-124m", "a100-80", 8));
  EXPECT_TRUE(a.is_predicted);
  EXPECT_GT(a.mfu, 0.2);
  EXPECT_LT(a.mfu, 0.8);
  EXPECT_THAT(a.assumptions, testing::Contains(HasSubstr("uncalibrated")));
}

TEST(RunAnswer, SaysWhere6NDIsWrong) {
  const plan::RunAnswer short_run = plan::answer(run_of("llama3-8b", "h100", 8));
  plan::RunQuestion q = run_of("llama3-8b", "h100", 8);
  q.seq = 131072;
  const plan::RunAnswer long_run = plan::answer(q);
  EXPECT_LT(std::abs(short_run.six_nd_error), 0.1);
  EXPECT_LT(long_run.six_nd_error, -0.4) << "attention has most of the work";
  EXPECT_GT(long_run.attention_share, 0.4);
  EXPECT_GT(plan::answer(run_of("lstm-small", "h100", 1)).step_seconds, 0)
      << "recurrent models have a graph, too";
}

TEST(RunAnswer, RefusesWhatCannotBe) {
  const auto refuse = [](auto change) {
    plan::RunQuestion q = run_of("llama3-8b", "h100", 8);
    change(q);
    return error_of([&] { plan::answer(q); });
  };
  EXPECT_THAT(refuse([](plan::RunQuestion& q) { q.mfu = 1.2; }), HasSubstr("not in (0, 1]"));
  EXPECT_THAT(refuse([](plan::RunQuestion& q) { q.layout.tp = 3; }), HasSubstr("does not divide"));
  EXPECT_THAT(refuse([](plan::RunQuestion& q) { q.count = 48, q.layout.tp = 3; }),
              HasSubstr("32 heads"));
  EXPECT_THAT(refuse([](plan::RunQuestion& q) { q.count = q.layout.pp = 33; }),
              HasSubstr("pp 33: a device has at least one layer, and the model has 32 layers"));
  EXPECT_THAT(refuse([](plan::RunQuestion& q) { q.layout.pp = 4, q.layout.interleave = 9; }),
              HasSubstr("pp 4 x interleave 9 = 36 stages are too many for 32 layers"));
  EXPECT_THAT(refuse([](plan::RunQuestion& q) { q.layout.ep = 2; }), HasSubstr("no experts"));
  EXPECT_THAT(refuse([](plan::RunQuestion& q) { q.layout.zero = 4; }), HasSubstr("0 to 3"));
  EXPECT_THAT(refuse([](plan::RunQuestion& q) { q.tokens = -1; }), HasSubstr("tokens"));
  EXPECT_THAT(refuse([](plan::RunQuestion& q) { q.count = 0; }), HasSubstr("devices"));
  EXPECT_THAT(refuse([](plan::RunQuestion& q) { q.global_batch = 7; }), HasSubstr("multiple"));
  EXPECT_THAT(refuse([](plan::RunQuestion& q) { q.peak_tflops = 1979; }), HasSubstr("sparsity"));
  EXPECT_THAT(refuse([](plan::RunQuestion& q) { q.gpu = "h1000"; }),
              AllOf(HasSubstr("near are"), HasSubstr("h100-sxm")));
  EXPECT_THAT(refuse([](plan::RunQuestion& q) { q.goodput = 0; }), HasSubstr("goodput"));
  EXPECT_THAT(refuse([](plan::RunQuestion& q) { q.gpu = "v100-sxm2"; }), HasSubstr("bf16"));
  EXPECT_THAT(error_of([] {
                plan::RunQuestion q = lecture_run();
                q.mfu.reset();
                plan::answer(q);
              }),
              HasSubstr("no graph to predict from"));
}

TEST(RunJson, HasTheStableNames) {
  const nlohmann::json json =
      nlohmann::json::parse(plan::to_json(plan::answer(run_of("llama3-8b", "h100", 8))));
  for (const char* key :
       {"params", "flops_per_token", "total_flops", "step_seconds", "tokens_per_second", "days",
        "gpu_hours", "cost_usd", "energy_kwh", "mfu", "hfu", "fits", "binding", "assumptions"})
    EXPECT_TRUE(json.contains(key)) << key;
  double sum = 0;
  for (const char* key :
       {"params", "grads", "master", "optimizer", "activations", "logits", "buffers", "overhead"})
    sum += json["memory_bytes"][key].get<double>();
  EXPECT_EQ(json["memory_bytes"]["total"].get<double>(), sum);
  EXPECT_EQ(json["params"].get<double>(), 8'030'261'248.0);
}

// 5 a s^2 b bytes a layer (Korthikanti 2022), kept where nothing is recomputed, once where something is.
TEST(RunAnswer, ScoresOfUnfusedAttentionTakeMemory) {
  plan::RunQuestion q;
  q.model = Gpt2Config{.vocab = 51200, .context = 2048, .layers = 48, .heads = 64, .width = 6144};
  q.tokens = 1e9;
  q.gpu = "a100-80", q.count = 8;
  q.seq = 2048, q.global_batch = 4, q.micro_batch = 4;
  q.layout.tp = 8;
  const plan::RunMemory fused = plan::answer(q).memory;
  q.system.attention = plan::AttentionMethod::unfused;
  const double scores = 5.0 * 64 * 2048 * 2048 * 4 / 8;
  EXPECT_NEAR(plan::answer(q).memory.activations - fused.activations, 48 * scores, 1e-6 * scores);
  q.recompute = compiler::RematPolicy::full;
  const plan::RunMemory again = plan::answer(q).memory;
  q.system.attention = plan::AttentionMethod::current;
  EXPECT_NEAR(again.activations, plan::answer(q).memory.activations, 1);
  EXPECT_NEAR(again.buffers - plan::answer(q).memory.buffers, scores, 1e-6 * scores);
}

// Sequence parallelism divides what tensor parallelism leaves whole, and sends as many bytes as before.
TEST(RunAnswer, SequenceParallelismSavesTimeAndNoTraffic) {
  plan::RunQuestion q;
  q.model = llama_preset("llama2-70b");
  q.tokens = 1e9;
  q.gpu = "a100-80", q.count = 8;
  q.seq = 4096, q.global_batch = 8;
  q.layout.tp = 8;
  const plan::RunAnswer split = plan::answer(q);
  q.layout.sequence_parallel = false;
  const plan::RunAnswer whole = plan::answer(q);
  EXPECT_LT(split.step_seconds, whole.step_seconds);
  EXPECT_GT(split.step_seconds, 0.85 * whole.step_seconds);
  EXPECT_EQ(split.traffic.tensor, whole.traffic.tensor);
}

// Bytes over the rate of a ring, and two ways around for the hops.
TEST(RunAnswer, AnAllReduceWaitsForHops) {
  const hardware::GpuSpec& gpu = hardware::find_gpu("a100-80");
  const double small = plan::node_reduce_seconds(gpu, 8, 1),
               large = plan::node_reduce_seconds(gpu, 8, 1e9);
  EXPECT_NEAR(small, 6.6e-6 + 14 * 0.6e-6, 1e-8) << "a flag with every word";
  EXPECT_NEAR(large, 2e9 * 7 / 8 / (300e9 * 370 / 450) + 8.4e-6 + 14 * 3.4e-6, 1e-6);
  plan::RunQuestion q;
  q.model = llama_preset("llama3-8b");
  q.tokens = 1e9;
  q.gpu = "h100", q.count = 64;
  q.layout.zero = 3;
  const double flat = plan::answer(q).traffic.data_seconds;
  q.system.gathers_of_layer = 4;
  const double hops = 8 * 14e-6 + 55 * 3.4e-6 + 8.4e-6;
  const auto m = static_cast<double>(plan::answer(q).micro_batches);
  EXPECT_NEAR(plan::answer(q).traffic.data_seconds - flat, 3 * 3 * 32 * m * hops, 1e-6);
}

}  // namespace
}  // namespace brrr
