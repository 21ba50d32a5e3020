// Steps of training that are started before the results of those before them are seen.
#include <memory>

#include "brrr/device/default_device.h"
#include "brrr/nn/families/gpt2.h"
#include "brrr/nn/models.h"
#include "brrr/train/step.h"
#include "cuda/gpu.h"
#include "support/square_tokens.h"
#include "support/values_of.h"

namespace brrr {
namespace {

// The second step is refused by its limit while two more are under way: what is left is the state before it.
void expect_nothing_behind_a_refused_update(Device device) {
  const DeviceScope scope(device);
  Random random(3);
  const std::unique_ptr<LanguageModel> model = make_model(
      Gpt2Config{.vocab = 32, .context = 16, .layers = 1, .heads = 2, .width = 16}, random);
  AdamW optimizer(model->named_parameters(), AdamWOptions{});
  const Schedule schedule({.shape = ScheduleShape::constant, .rate = 1e-2, .steps = 10});
  training::TrainStepOptions options{.halts = true};
  options.pipeline.device = device;
  training::TrainStep step(*model, optimizer, nullptr, schedule, options);
  const SquareTokens squares({2, 16}, 31);
  const Batch batch{.inputs = squares.tokens, .targets = squares.targets};
  for (int64_t i = 0; i < 3; ++i)  // by launches, captured, replayed
    EXPECT_TRUE(step.run(batch, i).applied);
  const std::vector<float> parameters = values_of({model->named_parameters()}),
                           moments = values_of({optimizer.states()});
  runtime::PendingResults bad = step.start(batch, 3, {.loss = 0}), behind = step.start(batch, 4),
                          last = step.start(batch, 5);
  const training::StepResult refused = step.finish(std::move(bad));
  EXPECT_FALSE(refused.applied);
  EXPECT_GT(refused.loss, 0) << "its loss is told";
  EXPECT_FALSE(step.finish(std::move(behind)).applied);
  EXPECT_FALSE(step.finish(std::move(last)).applied);
  EXPECT_EQ(values_of({model->named_parameters()}), parameters);
  EXPECT_EQ(values_of({optimizer.states()}), moments);
}

TEST(TrainStepAhead, MakesNoUpdateBehindARefusedOneOnTheCpu) {
  expect_nothing_behind_a_refused_update(Device::cpu());
}

TEST(CudaTrainStep, MakesNoUpdateBehindARefusedOne) {
  BRRR_NEEDS_GPU();
  expect_nothing_behind_a_refused_update(Device::cuda(0));
}

}  // namespace
}  // namespace brrr
