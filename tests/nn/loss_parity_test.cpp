// Training against PyTorch in f32 (tests/fixtures/training.json): from the same weights and batches, the
// gradients of step 1 and the losses of 100 steps with AdamW, clipping, warmup and a cosine. The
// fixture's "settings" write down every number; its weights come from support/counter_values.h.
#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/nn/models.h"
#include "brrr/optim/optimizer.h"
#include "brrr/optim/schedule.h"
#include "brrr/runtime/compile.h"
#include "fixtures/fixture.h"
#include "support/counter_values.h"

namespace brrr {
namespace {

using fixture::Json;

std::unique_ptr<LanguageModel> model_of(const Json& test) {
  Random random(1);
  auto model = make_model(model_from_json(test.at("config").dump()), random);
  for (const NamedTensor& parameter : model->named_parameters()) fill_by_name(parameter);
  return model;
}

TokenBatch batch_of(const Json& settings, const LanguageModel& model, int64_t step) {
  return token_batch(step, settings.at("batch"), settings.at("seq"), model.vocab());
}

TEST(LossParity, GradientsOfTheFirstStep) {
  const Json training = fixture::load("training");
  for (const Json& test : training.at("cases")) {
    const auto model = model_of(test);
    const TokenBatch batch = batch_of(training.at("settings"), *model, 0);
    const std::vector<NamedTensor> parameters = model->named_parameters();
    const std::vector<Tensor> grads =
        grad(model->loss(batch.tokens, batch.targets), model->parameters());
    for (size_t i = 0; i < grads.size(); ++i) {
      const std::string& name = parameters[i].name;
      EXPECT_LT(relative_distance({name, grads[i]}, test.at("gradients").at(name)), 1e-5) << name;
    }
  }
}

// The whole step is one program: the number of the step goes in, the rate is computed inside.
TEST(LossParity, HundredStepsOfAdamW) {
  const Json training = fixture::load("training");
  const Json& s = training.at("settings");
  for (const Json& test : training.at("cases")) {
    const auto model = model_of(test);
    const Schedule schedule({.shape = ScheduleShape::cosine,
                             .rate = s.at("rate"),
                             .steps = s.at("steps"),
                             .warmup = s.at("warmup"),
                             .final_share = s.at("final_share")});
    AdamW optimizer(model->named_parameters(), {.beta1 = s.at("beta1"),
                                                .beta2 = s.at("beta2"),
                                                .eps = s.at("eps"),
                                                .weight_decay = s.at("weight_decay")});
    auto step =
        runtime::compile([&](const Tensor& tokens, const Tensor& targets, const Tensor& number) {
          const Tensor loss = model->loss(tokens, targets);
          std::vector<Tensor> grads = grad(loss, optimizer.parameters());
          clip_global_norm(grads, s.at("clip").get<double>());
          optimizer.update(grads, schedule.at(number));
          return loss.detach();
        });
    for (int64_t i = 0; i < s.at("steps").get<int64_t>(); ++i) {
      const TokenBatch batch = batch_of(s, *model, i);
      const double expected = test.at("losses")[static_cast<size_t>(i)];
      const Tensor number = full({}, static_cast<double>(i), {.dtype = DType::i64});
      ASSERT_NEAR(step(batch.tokens, batch.targets, number).item<double>(), expected,
                  1e-4 * expected)
          << model->family() << ", step " << i;
    }
    EXPECT_EQ(step.function().programs(), 1);
  }
}

}  // namespace
}  // namespace brrr
