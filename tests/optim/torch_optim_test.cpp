// Every rule against torch.optim over 20 steps (tests/fixtures/optim.json), and compiled against eager.
#include <gtest/gtest.h>

#include <memory>

#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/optim/optimizer.h"
#include "brrr/runtime/compile.h"
#include "fixtures/fixture.h"
#include "support/counter_values.h"

namespace brrr {
namespace {

using fixture::Json;
using Parameters = std::vector<NamedTensor>;
using Make = std::function<std::unique_ptr<Optimizer>(Parameters)>;

Parameters start(DType dtype) {
  Parameters parameters{{"hidden.weight", zeros({6, 4}, {.dtype = dtype})},
                        {"wide.weight", zeros({3, 5}, {.dtype = dtype})},
                        {"norm.weight", zeros({4}, {.dtype = dtype})}};
  for (const NamedTensor& parameter : parameters) fill_by_name(parameter);
  return parameters;
}

// Noise of its own for every step, and a part that depends on the parameter.
std::vector<Tensor> noise_of(const Parameters& parameters, int step) {
  std::vector<Tensor> noise;
  for (const auto& [name, p] : parameters) {
    const std::vector<double> values = counter_values(join_text(name, "@", step), p.numel(), 1.0);
    noise.push_back(cast(from_values(values, p.shape()), p.dtype()));
  }
  return noise;
}

// Decays everything, as torch does without groups.
const std::vector<ParameterGroup> kAll = {};

// The options of make_optim_fixtures.py.
struct Rule {
  const char* name;
  Make make;
};
template <typename Kind, typename Options>
Make rule(const Options& options) {
  return [options](Parameters p) { return std::make_unique<Kind>(std::move(p), options); };
}
std::vector<Rule> rules() {
  const MomentRates muon_rest{.beta1 = 0.9, .beta2 = 0.95};
  return {
      {"sgd", rule<Sgd>(SgdOptions{})},
      {"sgd_decay", rule<Sgd>(SgdOptions{.weight_decay = 0.1})},
      {"momentum", rule<Sgd>(SgdOptions{.momentum = 0.9})},
      {"nesterov", rule<Sgd>(SgdOptions{.momentum = 0.9, .nesterov = true, .weight_decay = 0.01})},
      {"adagrad", rule<AdaGrad>(AdaGradOptions{.eps = 1e-5})},
      {"rmsprop", rule<RmsProp>(RmsPropOptions{.alpha = 0.9})},
      {"rmsprop_centered",
       rule<RmsProp>(
           RmsPropOptions{.alpha = 0.9, .momentum = 0.9, .centered = true, .weight_decay = 0.01})},
      {"adam", rule<Adam>(AdamOptions{.beta2 = 0.99, .weight_decay = 0.01})},
      {"adamw", rule<AdamW>(AdamWOptions{.weight_decay = 0.1, .groups = kAll})},
      {"adamw_groups",
       rule<AdamW>(AdamWOptions{
           .weight_decay = 0.1,
           .groups = {{.name = "matrices",
                       .holds = [](const NamedTensor& p) { return p.tensor.rank() >= 2; },
                       .rate_scale = 0.5},
                      {.name = "the rest",
                       .holds = [](const NamedTensor&) { return true; },
                       .weight_decay = 0.0}}})},
      {"lion", rule<Lion>(LionOptions{.weight_decay = 0.1})},
      {"muon",
       rule<Muon>(MuonOptions{.weight_decay = 0.1, .adam = muon_rest, .adam_rate_scale = 0.1})},
      {"muon_adam_size", rule<Muon>(MuonOptions{.scale = MuonScale::adam_size,
                                                .weight_decay = 0.1,
                                                .adam = muon_rest,
                                                .adam_rate_scale = 0.1})},
  };
}

void expect_rule(const Rule& rule, const Json& expected, double rate, DType dtype,
                 fixture::Tolerance tolerance) {
  const Parameters parameters = start(dtype);
  const std::unique_ptr<Optimizer> optimizer = rule.make(parameters);
  for (int step = 1; step <= 20; ++step) {
    std::vector<Tensor> grads = noise_of(parameters, step);
    for (size_t i = 0; i < grads.size(); ++i) grads[i] = grads[i] + parameters[i].tensor * 0.3;
    optimizer->update(grads, rate);
    const std::string key = std::to_string(step);
    if (!expected.contains(key)) continue;
    for (const auto& [name, p] : parameters)
      EXPECT_TRUE(fixture::near(p, expected.at(key).at(name), tolerance))
          << rule.name << ", " << name << ", step " << step;
  }
}

TEST(TorchOptim, TwentySteps) {
  const Json fixture = fixture::load("optim");
  const double rate = fixture.at("rate");
  EXPECT_EQ(fixture.at("rules").size(), rules().size());
  for (const Rule& rule : rules()) {
    const Json& expected = fixture.at("rules").at(rule.name);
    ASSERT_TRUE(expected.contains("20"));
    expect_rule(rule, expected, rate, DType::f64, {1e-11, 1e-11});
    // f32: 20 roundings of numbers near 1, and Newton-Schulz multiplies errors by up to 3.4^5.
    expect_rule(rule, expected, rate, DType::f32, {2e-5, 2e-5});
  }
}

// Parameters and states after 20 steps. The rate is an input of the step.
std::vector<std::vector<float>> trained(const Make& make, bool compiled,
                                        const compiler::PipelineOptions& options = {}) {
  const Parameters parameters = start(DType::f32);
  const std::unique_ptr<Optimizer> optimizer = make(parameters);
  const auto step = [&](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& rate) {
    std::vector<Tensor> grads{a, b, c};
    for (size_t i = 0; i < grads.size(); ++i) grads[i] = grads[i] + parameters[i].tensor * 0.3;
    optimizer->update(grads, rate);
  };
  auto program = runtime::compile(step, options);
  for (int i = 1; i <= 20; ++i) {
    const std::vector<Tensor> noise = noise_of(parameters, i);
    const Tensor rate = full({}, 0.05 / i);
    compiled ? program(noise[0], noise[1], noise[2], rate)
             : step(noise[0], noise[1], noise[2], rate);
  }
  std::vector<std::vector<float>> values;
  for (const NamedTensor& p : parameters) values.push_back(p.tensor.to_vector<float>());
  for (const NamedTensor& s : optimizer->states()) values.push_back(s.tensor.to_vector<float>());
  EXPECT_EQ(program.function().programs(), compiled ? 1 : 0);
  return values;
}

TEST(TorchOptim, CompiledHasTheBitsOfEager) {
  std::vector<Rule> all = rules();
  all.push_back(
      {"adamw in bf16", rule<AdamW>(AdamWOptions{.state_precision = StatePrecision::bf16})});
  all.push_back({"lion in bf16", rule<Lion>(LionOptions{.state_precision = StatePrecision::bf16})});
  all.push_back({"muon in bf16", rule<Muon>(MuonOptions{.state_precision = StatePrecision::bf16})});
  for (const Rule& rule : all) {
    const auto eager = trained(rule.make, false);
    EXPECT_EQ(trained(rule.make, true), eager) << rule.name;
    EXPECT_EQ(trained(rule.make, true, {.without = {"fuse"}}), eager) << rule.name;
  }
}

}  // namespace
}  // namespace brrr
