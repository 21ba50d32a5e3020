// A step is what it was predicted to be: memory to the byte, and every kernel has both times.
#include "brrr/plan/verify.h"

#include <gtest/gtest.h>

#include <set>

#include "brrr/cost/calibrate.h"
#include "brrr/cost/calibrate_cases.h"
#include "brrr/cost/kernel_family.h"
#include "brrr/runtime/stages.h"
#include "support/synthetic_rates.h"

namespace brrr {
namespace {

TEST(Verify, MemoryIsExactToTheByteForUnlikeModels) {
  const hardware::Rates rates = synthetic_rates();
  for (const char* name : {"gpt2-tiny", "llama-tiny", "llama-moe-tiny", "mlp", "cnn"}) {
    for (compiler::Precision precision :
         {compiler::Precision::f32, compiler::Precision::bf16_mixed}) {
      training::StepSpec spec = training::named_step(name, {.batch = 4, .seq = 32});
      spec.pipeline.precision.policy = precision;
      const plan::Verification v = plan::verify_step(spec, {.steps = 1, .rates = &rates});
      for (const plan::MemoryLine& line : v.memory)
        EXPECT_EQ(line.predicted, line.measured)
            << name << " " << compiler::precision_name(precision) << ": " << line.what;
      EXPECT_TRUE(v.memory_is_exact());
    }
  }
}

// A family that calibration leaves out is priced by the rate of another one, and wrong by any factor.
TEST(Verify, CalibrationMeasuresEveryFamilyOfTheModels) {
  const cost::CalibrationList list = cost::make_calibration_list(cost::CalibrationSize::small);
  // Numbers and positions: a few elements, made once a step.
  const std::set<std::string, std::less<>> small = {"full", "number", "arange", "rope_table"};
  // Every model of fewer than twenty million parameters, mixtures, latent attention and recurrent ones included.
  int models = 0;
  for (const std::string& name : training::step_models()) {
    const bool is_classifier = name == "mlp" || name == "cnn" || name == "char-gpt";
    if (!is_classifier && parameter_count(model_preset(name)) > 20'000'000) continue;
    ++models;
    const runtime::PlannedProgram program = training::plan_step(
        training::on_paper(training::named_step(name, {.batch = 4, .seq = 32})));
    for (const compiler::Kernel& kernel : program.kernels.kernels) {
      for (const cost::FamilyWork& part : cost::work_of(kernel).parts) {
        if (part.family.starts_with("tile.") || small.contains(part.family)) continue;
        EXPECT_TRUE(list.grids.contains(part.family)) << name << ": " << part.family;
      }
    }
  }
  EXPECT_GE(models, 14);
}

// And no case of the list is one that its own program does not run.
TEST(Verify, EveryCaseOfCalibrationRunsTheKernelThatItTimes) {
  const hardware::Rates rates =
      cost::calibrate({.rounds = 1, .size = cost::CalibrationSize::small});
  for (const char* family : {"topk", "gather", "one_hot", "cumsum", "index_select", "concat",
                             "scatter_add", "scatter_add.rows", "max_pool2d"}) {
    const hardware::RateGrid* grid = rates.find(family);
    ASSERT_NE(grid, nullptr) << family;
    for (const double value : grid->values) EXPECT_GT(value, 0) << family;
  }
}

TEST(Verify, EveryKernelHasAPredictionAndAMeasurement) {
  const hardware::Rates rates = synthetic_rates();
  const plan::Verification v = plan::verify_step(
      training::named_step("gpt2-tiny", {.batch = 2, .seq = 16}), {.steps = 2, .rates = &rates});
  EXPECT_GT(v.profile.kernels.size(), 10u);
  double predicted = 0;
  for (const plan::KernelProfile& kernel : v.profile.kernels)
    predicted += kernel.predicted.seconds();
  EXPECT_NEAR(predicted, v.predicted_seconds, 1e-12 + 1e-9 * predicted);
  EXPECT_GT(v.measured_seconds, 0);
}

}  // namespace
}  // namespace brrr
