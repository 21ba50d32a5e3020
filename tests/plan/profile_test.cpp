// Profiles of small steps, and advice that is held to what happens when it is followed.
#include "brrr/plan/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/random/random.h"
#include "brrr/plan/advice.h"
#include "brrr/report/profile_report.h"
#include "brrr/runtime/stages.h"
#include "brrr/train/setup.h"
#include "support/synthetic_rates.h"

namespace brrr {
namespace {

using testing::HasSubstr;

struct Profiled {
  training::StepSpec spec = training::named_step("gpt2-tiny", {.batch = 2, .seq = 16});
  training::TrainingParts parts = training::make_parts(spec);
  Batch batch = training::make_batch(spec);
  runtime::Executable& program = parts.step->executable(batch);
  plan::StepTimes times = plan::measure_steps(program, parts.step->inputs_of(batch), {.steps = 2});
  plan::Profile profile =
      plan::make_profile(program.kernels(), program.plan(), times, synthetic_rates());
};

TEST(Profile, CoversAllKernelsAndSumsUp) {
  const Profiled run;
  const plan::Profile& profile = run.profile;
  const std::vector<compiler::Kernel>& kernels = run.program.kernels().kernels;
  ASSERT_EQ(profile.kernels.size(), kernels.size());
  Cost cost;
  for (const compiler::Kernel& kernel : kernels) cost += kernel.cost;
  for (const auto& rows : {plan::rows_by_label(profile), plan::rows_by_class(profile),
                           plan::rows_by_regime(profile), plan::rows_by_phase(profile)}) {
    plan::ProfileRow all;
    for (const plan::ProfileRow& row : rows) {
      all.calls += row.calls;
      all.flops += row.flops;
      all.bytes += row.bytes;
      all.seconds += row.seconds;
      all.predicted += row.predicted;
    }
    EXPECT_EQ(all.calls, static_cast<int>(kernels.size()));
    EXPECT_EQ(all.flops, cost.flops);
    EXPECT_EQ(all.bytes, cost.bytes_read + cost.bytes_written);
    EXPECT_NEAR(all.seconds, profile.kernel_seconds, 1e-12);
    EXPECT_NEAR(all.predicted, profile.predicted_seconds, 1e-12);
  }
  EXPECT_GT(profile.step_seconds, 0);
}

TEST(Profile, ClassesSeeWhereFlopsAre) {
  const Profiled run;
  double flops = 0, contractions = 0;
  for (const plan::ProfileRow& row : plan::rows_by_class(run.profile)) {
    flops += static_cast<double>(row.flops);
    if (row.label == "contraction") contractions = static_cast<double>(row.flops);
  }
  EXPECT_GT(contractions / flops, 0.5);
  EXPECT_LT(contractions / flops, 1);
}

TEST(Profile, FormsForPeopleAndPrograms) {
  const Profiled run;
  report::ProfileReport report{
      .title = "tiny",
      .profile = run.profile,
      .advice = plan::advise(run.program.kernels(), run.program.plan(), synthetic_rates()),
      .batch_test = report::BatchTest{.batch = 2, .once = 1, .twice = 1.9},
      .what_if = {{"flops=2x", 0.5}}};
  const std::string text = report::profile_text(report, {.rows = 3});
  for (const char* part : {"tiny", "uncalibrated", "by what bounds them", "% of FLOPs", "% of time",
                           "largest residuals", "would save", "1.90x", "not overhead-bound",
                           "what if flops=2x", "GFLOP/s", "% roof"})
    EXPECT_THAT(text, HasSubstr(part));
  const auto json = nlohmann::json::parse(report::profile_json(report));
  EXPECT_EQ(json["calibrated"], false);
  EXPECT_EQ(json["what_if"]["predicted_seconds"], 0.5);
  EXPECT_EQ(json["resources"].size(), 3U);  // bandwidth, FLOP/s, overhead
  int calls = 0;
  for (const auto& row : json["kernels"]) calls += row["calls"].get<int>();
  EXPECT_EQ(calls, static_cast<int>(run.profile.kernels.size()));
}

// What Perfetto wants: complete events with a start and a length in microseconds, on named tracks.
TEST(Profile, TraceIsWhatPerfettoReads) {
  const Profiled run;
  const auto trace = nlohmann::json::parse(report::profile_trace(run.profile));
  size_t measured = 0, predicted = 0, names = 0;
  double end = 0;
  for (const auto& event : trace["traceEvents"]) {
    EXPECT_TRUE(event.contains("pid") && event.contains("tid") && event.contains("name"));
    if (event["ph"] == "M") {
      ++names;
      continue;
    }
    ASSERT_EQ(event["ph"], "X");
    EXPECT_GE(event["ts"].get<double>(), 0);
    EXPECT_GE(event["dur"].get<double>(), 0);
    if (event["tid"] == 1) {
      ++measured;
      EXPECT_GE(event["ts"].get<double>(), end - 1e-3) << "events do not overlap";
      end = event["ts"].get<double>() + event["dur"].get<double>();
    } else {
      ++predicted;
    }
  }
  EXPECT_EQ(names, 2U);
  EXPECT_EQ(measured, run.profile.kernels.size());
  EXPECT_EQ(predicted, run.profile.kernels.size());
}

TEST(Profile, LabelsStayShort) {
  compiler::Kernel kernel{.name = "a+b+c+d+e+f"};
  const OpDef* op = find_op("neg");
  for (int i = 0; i < 6; ++i) kernel.parts.push_back({op, 10});
  EXPECT_EQ(plan::kernel_label(kernel), "a+b+c+..3 more");
  kernel.name = "a+b+c+d+e+f x 50 and 26 more";  // a group, of so many nodes each
  EXPECT_EQ(plan::kernel_label(kernel), "a+b+c+..3 more x 50 and 26 more");
  kernel.name = "a+b+c+d";
  EXPECT_EQ(plan::kernel_label(kernel), "a+b+c+d");
}

// cos(cos(x)) without fusion: the advice is followed by compiling with fusion, and the price of the new
// program is the price that was promised.
TEST(Advice, FusingSavesWhatItPromised) {
  constexpr int64_t kCount = 1 << 22;
  const auto twice = [](const Tensor& x) { return cos(cos(x)); };
  auto apart = runtime::compile(twice, {.without = {"fuse"}}), fused = runtime::compile(twice);
  const Tensor x = normal({kCount}, RandomKey{.seed = 1});
  const runtime::Executable &before = apart.function().executable({{x}}),
                            &after = fused.function().executable({{x}});
  const hardware::Rates rates = synthetic_rates();
  const plan::Advice advice =
      plan::advise(before.kernels(), before.plan(), rates, {.least_part = 0});
  ASSERT_EQ(advice.fusions.size(), 1U);
  EXPECT_THAT(advice.fusions[0].change, HasSubstr("fusing cos [4194304] into cos [4194304]"));
  const double promised = advice.fusions[0].saves_seconds,
               found = cost::predict(before.kernels(), before.plan(), rates).seconds() -
                       cost::predict(after.kernels(), after.plan(), rates).seconds();
  EXPECT_NEAR(promised, found, 1e-9);
  EXPECT_GT(promised, 0);
}

TEST(Advice, SaysWhenAResourceSavesNothing) {
  hardware::Rates rates = synthetic_rates();
  rates.grids["launch"] = hardware::constant_rate("s", 1.0);  // nothing but overhead
  const runtime::PlannedProgram program = training::plan_step(
      training::on_paper(training::named_step("mlp", {.batch = 8, .seq = 64, .width = 64})));
  const plan::Advice advice = plan::advise(program.kernels, program.plan, rates);
  EXPECT_GT(advice.share[static_cast<size_t>(cost::Regime::overhead)], 0.99);
  const std::string text = plan::to_text(advice);
  EXPECT_THAT(text, HasSubstr("overhead-bound"));
  EXPECT_THAT(text, HasSubstr("twice the FLOP/s would save nothing"));
  EXPECT_THAT(text, HasSubstr("twice the bandwidth would save nothing"));
  EXPECT_THAT(text, testing::Not(HasSubstr("no overhead would save nothing")));
}

}  // namespace
}  // namespace brrr
