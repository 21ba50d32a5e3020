#include "brrr/run/learning_regime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace brrr {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kEvery = 50;  // steps between evaluations

using Curve = std::function<double(double)>;  // of the part of the run that is over, 0 to 1

struct Synthetic {
  Curve train, validation;
  int points = 20;
  double noise = 0.005;
  unsigned seed = 1;
};

// 1000 tokens a step, 1000 parameters a step of 1000 steps: one token for each parameter.
runs::RunLog make_run(const Synthetic& curves) {
  runs::RunLog run;
  run.facts.status = "finished";
  run.facts.batch = 10;
  run.facts.context = 100;
  run.facts.parameters = 1'000'000;
  run.facts.train_tokens = 500'000;
  std::mt19937 random(curves.seed);
  std::normal_distribution<double> noise(0, curves.noise);
  for (int64_t step = 1; step <= curves.points * kEvery; ++step) {
    const double part = static_cast<double>(step) / static_cast<double>(curves.points * kEvery);
    runs::StepRecord record{.step = step, .loss = curves.train(part) + 4 * noise(random)};
    if (step % kEvery == 0) {
      record.train_loss = curves.train(part) + noise(random);
      record.validation_loss = curves.validation(part) + noise(random);
    }
    run.steps.push_back(record);
  }
  return run;
}

double steep(double part) { return 1.5 + 3 * std::exp(-2 * part); }    // still falls at the end
double settled(double part) { return 1.5 + 3 * std::exp(-9 * part); }  // flat at the end

// Twenty noises of each shape: a verdict that depends on luck is no verdict.
void expect_kind(Synthetic curves, runs::LearningKind kind) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    curves.seed = seed;
    const runs::LearningRegime regime = runs::judge_learning(make_run(curves));
    EXPECT_EQ(runs::learning_name(regime.kind), runs::learning_name(kind))
        << "seed " << seed << ": " << regime.what;
  }
}

TEST(LearningRegime, BothLossesEqualAndFallingIsUnderfitting) {
  expect_kind({.train = steep, .validation = steep}, runs::LearningKind::underfitting);
  const runs::LearningRegime regime =
      runs::judge_learning(make_run({.train = steep, .validation = steep}));
  EXPECT_THAT(regime.what, HasSubstr("still falling"));
  EXPECT_FALSE(regime.regularisation_could_help);
  EXPECT_THAT(regime.regularisation, HasSubstr("There is no gap to close"));
  EXPECT_THAT(regime.next[0], HasSubstr("more steps"));
}

TEST(LearningRegime, EqualLossesThatStandStillAreHealthyUntilTheModelMustBeFull) {
  expect_kind({.train = settled, .validation = settled}, runs::LearningKind::healthy);
  runs::RunLog full = make_run({.train = settled, .validation = settled});
  full.facts.parameters = 5'000;  // 200 tokens seen for each
  const runs::LearningRegime regime = runs::judge_learning(full);
  EXPECT_EQ(regime.kind, runs::LearningKind::underfitting);
  EXPECT_THAT(regime.next[0], HasSubstr("larger"));
}

TEST(LearningRegime, ASmallGapOnSettledCurvesIsHealthyAndRegularisationCouldHelp) {
  const Synthetic curves{.train = settled,
                         .validation = [](double p) { return settled(p) + 0.15; }};
  expect_kind(curves, runs::LearningKind::healthy);
  const runs::LearningRegime regime = runs::judge_learning(make_run(curves));
  EXPECT_TRUE(regime.regularisation_could_help);
  EXPECT_THAT(regime.regularisation, HasSubstr("could help"));
  EXPECT_EQ(regime.since_step, 0);
}

// The validation loss falls to 1.65 at 40 % of the run and rises from there.
double turns(double part) { return 1.65 + 3 * std::pow(part - 0.4, 2); }

TEST(LearningRegime, AValidationLossThatTurnsIsOverfittingSinceTheTurn) {
  const Synthetic curves{.train = steep, .validation = turns};
  expect_kind(curves, runs::LearningKind::overfitting);
  const runs::LearningRegime regime = runs::judge_learning(make_run(curves));
  EXPECT_NEAR(static_cast<double>(regime.since_step), 400, 100);  // of 1000, evaluated every 50
  EXPECT_EQ(regime.best_step, regime.since_step);
  EXPECT_THAT(regime.what, HasSubstr("Overfitting since step"));
  EXPECT_TRUE(regime.regularisation_could_help || regime.gap() < 0);
}

TEST(LearningRegime, AValidationLossThatStandsWhileTheTrainingLossFallsIsOverfitting) {
  const Synthetic curves{.train = [](double p) { return 2.5 * std::exp(-2 * p); },
                         .validation = [](double p) { return 2 + std::exp(-12 * p); }};
  expect_kind(curves, runs::LearningKind::overfitting);
  const runs::LearningRegime regime = runs::judge_learning(make_run(curves));
  EXPECT_GT(regime.since_step, 200);  // exp(-12 p) is below 2 % of the loss from p = 0.27 on
  EXPECT_LT(regime.since_step, 500);
}

TEST(LearningRegime, ATrainingLossThatRisesIsDiverging) {
  const Curve curve = [](double p) { return 2 + std::pow(p - 0.5, 2) * 4; };
  expect_kind({.train = curve, .validation = curve}, runs::LearningKind::diverging);
  const runs::LearningRegime regime =
      runs::judge_learning(make_run({.train = curve, .validation = curve}));
  EXPECT_NEAR(static_cast<double>(regime.since_step), 500, 100);
  EXPECT_THAT(regime.next[0], HasSubstr("learning rate"));
}

TEST(LearningRegime, ALossThatIsNoNumberIsDivergingSinceTheLastThatWas) {
  runs::RunLog run = make_run({.train = steep, .validation = steep});
  for (size_t i = run.steps.size() - 10; i < run.steps.size(); ++i)
    run.steps[i].loss = std::numeric_limits<double>::quiet_NaN();
  const runs::LearningRegime regime = runs::judge_learning(run);
  EXPECT_EQ(regime.kind, runs::LearningKind::diverging);
  EXPECT_EQ(regime.since_step, 990);
}

TEST(LearningRegime, ThreeEvaluationsAreTooFewToSay) {
  const runs::LearningRegime regime =
      runs::judge_learning(make_run({.train = steep, .validation = turns, .points = 3}));
  EXPECT_EQ(regime.kind, runs::LearningKind::too_early);
  EXPECT_THAT(regime.what, HasSubstr("3 of the 4 evaluations"));
  EXPECT_EQ(runs::judge_learning(runs::RunLog{}).kind, runs::LearningKind::too_early);
}

TEST(LearningRegime, NoiseAloneIsNoOverfitting) {
  expect_kind({.train = settled, .validation = settled, .noise = 0.05},
              runs::LearningKind::healthy);
}

TEST(LearningRegime, ParametersAgainstSamplesCarryTheCaveat) {
  runs::RunLog run = make_run({.train = steep, .validation = turns});
  EXPECT_THAT(
      runs::judge_learning(run).capacity,
      HasSubstr("1 million parameters against 500,000 training tokens (2 a token), read 2 times"));
  EXPECT_THAT(runs::judge_learning(run).capacity, HasSubstr("more capacity may help again"));
  run.facts.train_tokens = 1'000'000;
  EXPECT_THAT(runs::judge_learning(run).capacity, HasSubstr("close to one parameter a sample"));
  run.facts.train_tokens = 100'000'000;
  EXPECT_THAT(runs::judge_learning(run).capacity, HasSubstr("fewer parameters than samples"));
}

TEST(LearningRegime, WithoutEvaluationOnTrainingDataTheStepsThemselvesServe) {
  runs::RunLog run = make_run({.train = steep, .validation = turns});
  for (runs::StepRecord& record : run.steps) record.train_loss.reset();
  EXPECT_EQ(runs::judge_learning(run).kind, runs::LearningKind::overfitting);
}

TEST(LearningCurves, NoiseIsFoundOnASlope) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 0.1);
  std::vector<double> ys;
  for (int i = 0; i < 20000; ++i) ys.push_back(3 - i * 0.01 + noise(random));
  EXPECT_NEAR(runs::noise_of(ys), 0.1, 0.003);  // the median of 20,000 strays by about 1 %
}

TEST(LearningCurves, SmoothingKeepsLinesInsideAndConstantsEverywhere) {
  const std::vector<double> line{1, 2, 3, 4}, constant{5, 5, 5};
  EXPECT_THAT(runs::smoothed(line), ::testing::ElementsAre(4.0 / 3, 2, 3, 11.0 / 3));
  EXPECT_THAT(runs::smoothed(constant), ::testing::ElementsAre(5, 5, 5));
  EXPECT_TRUE(runs::smoothed(std::vector<double>{}).empty());
}

TEST(LearningCurves, ARunningMeanHalvesWhatIsOld) {
  const std::vector<double> ys{1, NAN, 0};
  const std::vector<double> mean = runs::running_mean(ys, 1);
  EXPECT_DOUBLE_EQ(mean[1], 1);
  EXPECT_DOUBLE_EQ(mean[2], 0.5 / 1.5);
}

}  // namespace
}  // namespace brrr
