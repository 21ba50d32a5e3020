#include "brrr/run/speed_regime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/made_up_run.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;

TEST(SpeedRegime, SetsMeasuredBesidePredicted) {
  const runs::SpeedRegime regime = runs::judge_speed(made_up_run("a", false));
  EXPECT_DOUBLE_EQ(regime.step_seconds, 0.160);
  EXPECT_THAT(regime.what, HasSubstr("Compute-bound: 71 %"));
  EXPECT_THAT(regime.why, HasSubstr("measured is 1.07 of it"));
  EXPECT_NEAR(regime.share[0] + regime.share[1] + regime.share[2], 1, 1e-9);
  EXPECT_EQ(regime.next.size(), 1U);  // nothing is unusual
}

TEST(SpeedRegime, SeesARunThatSlowsDown) {
  runs::RunLog run = made_up_run("a", false);
  for (size_t i = run.steps.size() - 20; i < run.steps.size(); ++i) run.steps[i].ms = 400;
  const runs::SpeedRegime regime = runs::judge_speed(run);
  EXPECT_DOUBLE_EQ(regime.slowdown, 2.5);
  EXPECT_THAT(regime.next.back(), HasSubstr("2.5 times the median"));
}

TEST(SpeedRegime, SaysWhenThePredictionWasTooGood) {
  runs::RunLog run = made_up_run("a", false);
  run.facts.predicted_step_seconds = 0.05;
  EXPECT_THAT(runs::judge_speed(run).next.back(), HasSubstr("brrr calibrate"));
}

TEST(SpeedRegime, TheFirstStepWhichCompilesIsNoMeasure) {
  runs::RunLog run = made_up_run("a", false);
  run.steps.resize(1);
  EXPECT_TRUE(std::isnan(runs::judge_speed(run).step_seconds));
  EXPECT_THAT(runs::judge_speed(run).why, HasSubstr("too few steps"));
  EXPECT_THAT(runs::judge_speed(runs::RunLog{}).what, HasSubstr("not predicted"));
}

}  // namespace
}  // namespace brrr
