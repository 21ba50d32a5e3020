// The guard tells spikes and NaN from steps, and a step that it leaves out changes nothing.
#include "brrr/train/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "brrr/train/saved_tensors.h"
#include "train/small_run.h"

namespace brrr {
namespace {

using testing::HasSubstr;

// As a run on the cpu does: each step is judged before the next one starts.
training::GuardVerdict judge(training::SpikeGuard& guard, const training::StepResult& result) {
  return guard.judge(result, guard.spike_limits());
}

// Losses that waver by a hundredth around 2, norms around 1.
void calm(training::SpikeGuard& guard, int steps) {
  for (int i = 0; i < steps; ++i) {
    const double wave = 0.01 * (i % 3 - 1);
    EXPECT_EQ(judge(guard, {.loss = 2 + wave, .grad_norm = 1 + wave}).words, "");
  }
}

TEST(SpikeGuard, HasNoLimitsBeforeItHasSeenSteps) {
  const training::SpikeGuard guard({});
  EXPECT_TRUE(std::isinf(guard.step_limits(guard.spike_limits()).loss));
  EXPECT_TRUE(std::isinf(guard.step_limits(guard.spike_limits()).grad_norm));
}

TEST(SpikeGuard, LimitsAreDeviationsAboveTheMean) {
  training::SpikeGuard guard({.z = 6, .window = 50});
  for (int i = 0; i < 52; ++i) judge(guard, {.loss = i % 2 == 0 ? 1.0 : 3.0, .grad_norm = 1});
  const double deviation = std::sqrt(50.0 / 49.0);  // of 25 ones and 25 threes
  EXPECT_NEAR(guard.spike_limits().loss, 2 + 6 * deviation, 1e-12);
  EXPECT_NEAR(guard.spike_limits().grad_norm, 1 + 6 * 0.5, 1e-12) << "never nearer than a half";
}

TEST(SpikeGuard, SkipsASpikeAndForgetsIt) {
  training::SpikeGuard guard({.action = runs::GuardAction::skip});
  calm(guard, 60);
  const training::GuardHistory before = guard.history();
  const training::GuardVerdict verdict =
      judge(guard, {.loss = 9, .grad_norm = 1, .applied = false});
  EXPECT_THAT(verdict.words, HasSubstr("loss spike (9, limit"));
  EXPECT_THAT(verdict.words, HasSubstr("skipped"));
  EXPECT_FALSE(verdict.stops);
  EXPECT_EQ(guard.history().losses, before.losses);
  EXPECT_THAT(judge(guard, {.loss = 2, .grad_norm = 70, .applied = false}).words,
              HasSubstr("gradient spike (norm 70"));
}

TEST(SpikeGuard, WarnsWithoutLimitsOrStops) {
  training::SpikeGuard warns({.action = runs::GuardAction::warn}),
      stops({.action = runs::GuardAction::stop});
  calm(warns, 60), calm(stops, 60);
  EXPECT_TRUE(std::isinf(warns.step_limits(warns.spike_limits()).loss));
  EXPECT_THAT(judge(warns, {.loss = 9, .grad_norm = 1}).words, HasSubstr(": applied"));
  EXPECT_LT(stops.step_limits(stops.spike_limits()).loss, 9);
  const training::GuardVerdict verdict =
      judge(stops, {.loss = 9, .grad_norm = 1, .applied = false});
  EXPECT_TRUE(verdict.stops);
  EXPECT_THAT(verdict.words, HasSubstr("stopped before the update"));
}

TEST(SpikeGuard, ANewLevelIsNoSpikeForEver) {
  training::SpikeGuard guard({.action = runs::GuardAction::skip});
  calm(guard, 60);
  for (int i = 0; i < 12; ++i) judge(guard, {.loss = 5, .grad_norm = 1, .applied = false});
  EXPECT_TRUE(std::isinf(guard.step_limits(guard.spike_limits()).loss));
}

TEST(SpikeGuard, StopsWhenNumbersDoNotComeBack) {
  training::SpikeGuard guard({.action = runs::GuardAction::skip});
  int steps = 0;
  while (!judge(guard, {.loss = NAN, .grad_norm = NAN, .applied = false}).stops) {
    ASSERT_LT(++steps, 100);
  }
  EXPECT_EQ(steps, 24);
}

// A GPU that is ahead and a cpu that is not must make the same run.
TEST(SpikeGuard, LimitsDoNotDependOnHowFarTheDeviceIsAhead) {
  const auto result_of = [](int64_t step) {
    const double wave = 0.01 * static_cast<double>(step % 7);
    return training::StepResult{.loss = 2 + wave, .grad_norm = 1 + wave};
  };
  const auto limits_with = [&](int64_t ahead) {
    training::SpikeGuard guard({});
    std::vector<training::StepLimits> limits;
    int64_t judged = 0;
    for (int64_t step = 0; step < 80; ++step) {
      limits.push_back(guard.spike_limits(step - judged));
      while (step + 1 - judged > ahead) {
        guard.judge(result_of(judged), limits[static_cast<size_t>(judged)]);
        ++judged;
      }
    }
    return limits;
  };
  const std::vector<training::StepLimits> alone = limits_with(0);
  EXPECT_EQ(limits_with(1), alone);
  EXPECT_EQ(limits_with(training::kStepsAhead), alone);
  EXPECT_TRUE(std::isinf(alone[51].loss)) << "50 steps seen, and two more that do not count";
  EXPECT_LT(alone[52].loss, 9);
}

// ---- in the step ---------------------------------------------------------------------------------
struct Fixture {
  runs::TrainConfig config;
  training::TrainingParts parts;
  Batch batch;
  explicit Fixture(runs::GuardAction action = runs::GuardAction::skip) {
    config.guard.action = action;
    config.model.context = 8;
    config.train.steps = 10;
    config.train.batch = 2;
    config.optimizer.lr = 0.01;
    config.optimizer.warmup = 0;
    config.optimizer.average = 0.9;
    config.data.whole_documents = false;
    config.data.document_mask = false;
    parts = training::make_parts(
        config, Gpt2Config{.vocab = 11, .context = 8, .layers = 2, .heads = 2, .width = 8});
    const std::vector<int64_t> ids{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1, 2, 3, 4, 5};
    batch = {.inputs = from_values(ids, {2, 8}), .targets = from_values(ids, {2, 8})};
  }
  std::vector<std::vector<float>> everything() {
    std::vector<std::vector<float>> values;
    const training::SavedTensors saved = training::copy_of(training::tensors_to_save(parts, batch));
    for (const auto* list : {&saved.model, &saved.optimizer}) {
      for (const NamedTensor& each : *list) values.push_back(each.tensor.to_vector<float>());
    }
    return values;
  }
};

TEST(GuardedStep, BeyondALimitNothingChanges) {
  Fixture f;
  const training::StepResult first = f.parts.step->run(f.batch, 0);
  EXPECT_TRUE(first.applied);
  const auto before = f.everything();
  const training::StepResult refused = f.parts.step->run(f.batch, 1, {.loss = first.loss / 2});
  EXPECT_FALSE(refused.applied);
  EXPECT_EQ(f.everything(), before);
  EXPECT_FALSE(f.parts.step->run(f.batch, 1, {.grad_norm = first.grad_norm / 1e6}).applied);
  EXPECT_EQ(f.everything(), before);
  const training::StepResult applied = f.parts.step->run(f.batch, 1);
  EXPECT_TRUE(applied.applied);
  EXPECT_EQ(applied.loss, refused.loss) << "the loss is that of the weights before, again";
  EXPECT_NE(f.everything(), before);
}

// A good step that was started before anybody saw that the last one was refused.
TEST(GuardedStep, ARefusalThatStopsTheRunHaltsAllBehindIt) {
  Fixture f(runs::GuardAction::stop);
  const training::StepResult first = f.parts.step->run(f.batch, 0);
  EXPECT_TRUE(first.applied);
  const auto before = f.everything();
  EXPECT_FALSE(f.parts.step->run(f.batch, 1, {.loss = first.loss / 2}).applied);
  EXPECT_FALSE(f.parts.step->run(f.batch, 2).applied);
  EXPECT_EQ(f.everything(), before);
}

TEST(GuardedStep, WhatIsNotANumberIsNeverApplied) {
  Fixture f;
  f.parts.step->run(f.batch, 0);
  const NamedTensor broken = f.parts.model->named_parameters().front();
  const float kept = broken.tensor[0][0].item<float>();
  store_float(broken.tensor, 0, NAN);
  store_float(broken.tensor, 8, NAN);  // of a token that the batch has
  const training::StepResult result = f.parts.step->run(f.batch, 1);
  EXPECT_TRUE(std::isnan(result.loss));
  EXPECT_FALSE(result.applied);
  store_float(broken.tensor, 0, kept);
  for (const NamedTensor& each : f.parts.optimizer->states()) {
    for (const double value : each.tensor.to_vector<double>()) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST(GuardedStep, NamesNormsOfParametersAndLargestActivations) {
  Fixture f;
  const training::StepResult result = f.parts.step->run(f.batch, 0);
  EXPECT_THAT(f.parts.step->activation_names(), testing::ElementsAre("h.0", "h.1"));
  ASSERT_EQ(result.activations.size(), 2U);
  EXPECT_GT(result.activations[0], 0);
  double squares = 0;
  for (const double norm : result.grad_norms) squares += norm * norm;
  EXPECT_NEAR(std::sqrt(squares), result.grad_norm, 1e-5 * result.grad_norm);
  EXPECT_EQ(result.grad_norms.size(), f.parts.optimizer->named_parameters().size());
}

// The rate grows until it is too large.
void make_it_explode(SmallRun& run) {
  run.config.train.steps = 60;
  run.config.optimizer.clip = 0;
  run.config.optimizer.name = "sgd";
  run.config.optimizer.schedule = ScheduleShape::linear;
  run.config.optimizer.warmup = 60;
  run.config.optimizer.lr = 3000;
  run.config.guard.action = runs::GuardAction::stop;
}

// It is stopped with its state before the bad update, and leaves the batch.
TEST(GuardedRun, SavesTheBatchAndTheStateBefore) {
  SmallRun run;
  make_it_explode(run);
  const training::TrainOutcome outcome = run.train("a");
  EXPECT_EQ(outcome.status, "stopped");
  EXPECT_THAT(outcome.reason, HasSubstr("stopped before the update"));
  const std::filesystem::path bad = run.folder("a") / "guard" / runs::checkpoint_name(outcome.step);
  const auto report = nlohmann::json::parse(read_file(bad / "report.json"));
  EXPECT_EQ(report["applied"], false);
  EXPECT_TRUE(report["grad_norms"].contains("wte.weight"));
  EXPECT_TRUE(report["largest_activations"].contains("h.0"));
  EXPECT_TRUE(std::filesystem::exists(bad / "batch.safetensors"));
  EXPECT_EQ(runs::read_run_facts(run.folder("a")).status, "stopped");
  const training::TrainOutcome before = run.train_until("b", outcome.step - 1);
  ASSERT_EQ(before.step, outcome.step - 1);
  EXPECT_EQ(weights_of(outcome.checkpoint), weights_of(before.checkpoint))
      << "weights and optimizer as they were before the update that was refused";
}

// Steps that were started behind the one that was refused change nothing.
TEST(GuardedRun, ADeviceThatIsAheadStopsInTheSameState) {
  SmallRun run;
  make_it_explode(run);
  run.config.report.eval_every = run.config.checkpoint.every = 1000;  // nobody looks in between
  const training::TrainOutcome alone = run.train("alone");
  const training::TrainOutcome ahead = run.train("ahead", {.steps_ahead = training::kStepsAhead});
  EXPECT_EQ(ahead.step, alone.step);
  EXPECT_EQ(ahead.reason, alone.reason);
  EXPECT_EQ(run.losses("ahead").size(), run.losses("alone").size())
      << "those behind it are not told";
  EXPECT_EQ(weights_of(ahead.checkpoint), weights_of(alone.checkpoint));
}

}  // namespace
}  // namespace brrr
