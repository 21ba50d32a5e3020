// The model families against the same models in plain torch (tests/fixtures/models.json), in f64: logits,
// loss and the gradient of every parameter. Weights come from the same formula on both sides.
#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/nn/models.h"
#include "brrr/ops/view/views.h"
#include "fixtures/fixture.h"
#include "support/counter_values.h"

namespace brrr {
namespace {

using fixture::Json;

// Row b has a second document from token 5 + b on.
Tensor packed_documents(int64_t batch, int64_t seq) {
  std::vector<int64_t> ids;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t t = 0; t < seq; ++t) ids.push_back(t >= 5 + b ? 1 : 0);
  }
  return from_values(ids, {batch, seq});
}

// Both sides compute in f64 in another order; exp, tanh and rsqrt differ in the last bits.
constexpr double kTolerance = 1e-9;

void expect_case(const Json& test) {
  ParameterScope f64({.dtype = DType::f64});
  Random random(1);
  const auto model = make_model(model_from_json(test.at("config").dump()), random);
  EXPECT_EQ(model->parameter_count(), test.at("parameters").get<int64_t>());
  const std::vector<NamedTensor> parameters = model->named_parameters();
  for (const NamedTensor& parameter : parameters) fill_by_name(parameter);

  const TokenBatch batch = token_batch(0, 3, 16, model->vocab());
  ForwardInputs inputs;
  if (test.at("documents").get<bool>()) inputs.documents = packed_documents(3, 16);
  const Tensor logits = model->logits(batch.tokens, inputs);
  const Tensor some = slice(select(logits, 1, 15), 1, {0, model->vocab(), 7});
  EXPECT_TRUE(fixture::near(some, test.at("logits"), {kTolerance, kTolerance}));
  const Tensor loss = model->loss(batch.tokens, batch.targets, inputs);
  EXPECT_NEAR(loss.item<double>(), test.at("loss").get<double>(), kTolerance);

  const std::vector<Tensor> grads = grad(loss, model->parameters());
  ASSERT_EQ(grads.size(), test.at("gradients").size());
  for (size_t i = 0; i < grads.size(); ++i) {
    const std::string& name = parameters[i].name;
    ASSERT_TRUE(test.at("gradients").contains(name)) << name;
    EXPECT_LT(relative_distance({name, grads[i]}, test.at("gradients").at(name)), kTolerance)
        << name;
  }
}

TEST(TorchModels, LogitsLossesAndGradients) {
  const Json models = fixture::load("models");
  for (const Json& test : models.at("cases")) {
    SCOPED_TRACE(test.at("name").get<std::string>());
    expect_case(test);
  }
}

}  // namespace
}  // namespace brrr
