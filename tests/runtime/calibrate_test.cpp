// Calibration on small shapes: every family is there, positive, and survives the file.
#include "brrr/cost/calibrate.h"

#include <gtest/gtest.h>

#include "brrr/cost/predict.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"

namespace brrr {
namespace {

TEST(Calibrate, MeasuresEveryFamily) {
  const hardware::Rates rates =
      cost::calibrate({.rounds = 1, .size = cost::CalibrationSize::small});
  EXPECT_TRUE(rates.calibrated);
  for (const auto& [family, grid] : rates.grids) {
    EXPECT_EQ(grid.values.size(), grid.points()) << family;
    for (double value : grid.values) EXPECT_GT(value, 0) << family;
  }
  for (const char* family : {"launch",
                             "fork_join",
                             "bandwidth",
                             "optimizer",
                             "matmul.nn",
                             "matmul.nt",
                             "matmul.tn",
                             "attention",
                             "attention_backward",
                             "softmax",
                             "layer_norm",
                             "layer_norm_backward",
                             "cross_entropy_backward",
                             "sum.row",
                             "sum.column",
                             "embedding",
                             "embedding_grad",
                             "copy",
                             "copy.strided",
                             "tile.other"})
    EXPECT_NE(rates.find(family), nullptr) << family;
  for (const OpDef* op : all_ops()) {
    if (op->tiles && op->tiles().f32 && op->samples && !op->samples().empty()) {
      EXPECT_NE(rates.find(join_text("tile.", op->name)), nullptr) << op->name;
    }
  }
  EXPECT_EQ(hardware::to_json(hardware::parse_rates(hardware::to_json(rates), "text")),
            hardware::to_json(rates));
}

TEST(Calibrate, MeasuresOneRoundHoweverLittleTimeThereIs) {
  int rounds = 0;
  const hardware::Rates rates = cost::calibrate(
      {.rounds = 3, .size = cost::CalibrationSize::small, .most_seconds = 0, .on_round = [&](int) {
         ++rounds;
       }});
  EXPECT_EQ(rounds, 1);
  EXPECT_EQ(rates.kind(), hardware::RatesKind::full);
}

TEST(RunTimed, GivesTheSameResultsAndATimeForEveryKernel) {
  auto f = runtime::compile([](const Tensor& x) { return exp(x) * 2.0; }, {.without = {"fuse"}});
  const Tensor x = full({3000}, 0.5);
  runtime::Executable& program = f.function().executable({{x}});
  runtime::KernelTimes times;
  const Tensor timed = program.run_timed({{x}}, times)[0];
  EXPECT_EQ(timed.to_vector<float>(), f(x).to_vector<float>());
  ASSERT_EQ(times.seconds.size(), program.kernels().kernels.size());
  for (size_t k = 0; k < times.seconds.size(); ++k) {
    EXPECT_GT(times.seconds[k], 0);
    if (k > 0) {
      EXPECT_GE(times.begin[k], times.begin[k - 1] + times.seconds[k - 1]);
    }
  }
  program.run_timed({{x}}, times);
  EXPECT_EQ(times.seconds.size(), program.kernels().kernels.size()) << "one step, not two";
}

}  // namespace
}  // namespace brrr
