// Learning rates by their formulas, and as part of a compiled step.
#include "brrr/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "brrr/ops/create/creation.h"
#include "brrr/runtime/compile.h"
#include "support/error_of.h"

namespace brrr {
namespace {

TEST(Schedule, Constant) {
  const Schedule schedule(
      {.shape = ScheduleShape::constant, .rate = 0.5, .steps = 10, .warmup = 4});
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.125);
  EXPECT_DOUBLE_EQ(schedule.at(3), 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(9), 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(1000), 0.5);
}

TEST(Schedule, Linear) {
  const Schedule schedule(
      {.shape = ScheduleShape::linear, .rate = 1, .steps = 11, .final_share = 0});
  for (int64_t t = 0; t <= 10; ++t)
    EXPECT_NEAR(schedule.at(t), 1 - 0.1 * static_cast<double>(t), 1e-15);
  EXPECT_EQ(schedule.at(12), 0);
}

TEST(Schedule, Cosine) {
  const Schedule schedule({.rate = 2, .steps = 111, .warmup = 10, .final_share = 0.1});
  EXPECT_DOUBLE_EQ(schedule.at(9), 2);
  EXPECT_DOUBLE_EQ(schedule.at(10), 2);
  EXPECT_NEAR(schedule.at(60), 2 * 0.55, 1e-15);  // half way
  EXPECT_NEAR(schedule.at(110), 0.2, 1e-15);
  EXPECT_NEAR(schedule.at(35), 2 * (0.1 + 0.9 * (1 + std::cos(M_PI / 4)) / 2), 1e-14);
}

TEST(Schedule, WarmupStableDecay) {
  const Schedule schedule({.shape = ScheduleShape::warmup_stable_decay,
                           .rate = 1,
                           .steps = 100,
                           .warmup = 10,
                           .final_share = 0,
                           .decay_steps = 20});
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(10), 1);
  EXPECT_DOUBLE_EQ(schedule.at(79), 1);
  EXPECT_NEAR(schedule.at(89), 0.5, 1e-15);
  EXPECT_EQ(schedule.at(99), 0);
}

TEST(Schedule, CompiledFromTheNumberOfTheStep) {
  for (ScheduleShape shape : {ScheduleShape::constant, ScheduleShape::linear, ScheduleShape::cosine,
                              ScheduleShape::warmup_stable_decay}) {
    EXPECT_EQ(parse_schedule(schedule_name(shape)), shape);
    const Schedule schedule({.shape = shape, .rate = 3e-4, .steps = 50, .warmup = 5});
    auto rate = runtime::compile([&](const Tensor& step) { return schedule.at(step); });
    for (int64_t t = 0; t < 55; ++t)
      EXPECT_EQ(rate(full({}, static_cast<double>(t), {.dtype = DType::i64})).item<double>(),
                schedule.at(t));
    EXPECT_EQ(rate.function().programs(), 1);
  }
}

TEST(Schedule, RefusesWhatCannotBe) {
  EXPECT_NE(error_of([] { Schedule({.steps = 10, .warmup = 11}); }).find("warmup of 11"),
            std::string::npos);
  EXPECT_NE(error_of([] { Schedule({.rate = 0}); }).find("positive"), std::string::npos);
  EXPECT_NE(error_of([] { parse_schedule("cosin"); }).find("cosine"), std::string::npos);
}

}  // namespace
}  // namespace brrr
