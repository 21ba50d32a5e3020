// Optimizers by configuration: each setting reaches the rule that it is for.
#include <gtest/gtest.h>

#include "brrr/ops/create/creation.h"
#include "brrr/train/setup.h"

namespace brrr {
namespace {

constexpr const char* kNames[] = {"adamw", "adam", "sgd",     "nesterov",
                                  "lion",  "muon", "rmsprop", "adagrad"};

// A matrix and a vector of ones behind three updates by gradients that change.
std::vector<double> trained(const runs::OptimizerConfig& config, double gradient = 0.5) {
  const std::vector<NamedTensor> parameters{{"block.weight", full({2, 2}, 1.0)},
                                            {"block.bias", full({2}, 1.0)}};
  const auto optimizer = training::make_optimizer(config, parameters);
  for (int step = 1; step <= 3; ++step) {
    std::vector<Tensor> grads;
    for (const NamedTensor& each : parameters)
      grads.push_back(full(each.tensor.shape(), gradient * step));
    optimizer->update(grads, 0.1);
  }
  return {parameters[0].tensor.to_vector<double>()[0], parameters[1].tensor.to_vector<double>()[0]};
}

TEST(OptimizerByConfig, EverySettingReachesTheRulesThatHaveIt) {
  for (const std::string name : kNames) {
    runs::OptimizerConfig plain{.name = name}, first = plain, second = plain, small = plain;
    first.beta1 = 0.3, second.beta2 = 0.3, small.eps = 0.3;
    const bool has_first = name != "rmsprop" && name != "adagrad",
               has_second = has_first && name != "sgd" && name != "nesterov",
               has_eps = name != "sgd" && name != "nesterov" && name != "lion";
    EXPECT_EQ(trained(plain) != trained(first), has_first && name != "lion") << name;
    EXPECT_EQ(trained(plain) != trained(second),
              (has_second || name == "rmsprop") && name != "lion")
        << name;
    EXPECT_EQ(trained(plain) != trained(small), has_eps) << name;
  }
}

// Lion goes by signs: its rates show where gradients change theirs.
TEST(OptimizerByConfig, LionHasBothRates) {
  const auto changing = [](const runs::OptimizerConfig& config) {
    const std::vector<NamedTensor> parameters{{"weight", full({2, 2}, 1.0)}};
    const auto optimizer = training::make_optimizer(config, parameters);
    for (const double gradient : {1.0, -0.2, -0.2, 0.05, -0.01})
      optimizer->update(std::vector<Tensor>{full({2, 2}, gradient)}, 0.1);
    return parameters[0].tensor.to_vector<double>()[0];
  };
  runs::OptimizerConfig plain{.name = "lion"}, first = plain, second = plain;
  first.beta1 = 0.1, second.beta2 = 0.1;
  EXPECT_NE(changing(plain), changing(first));
  EXPECT_NE(changing(plain), changing(second));
}

// "weight_decay: of matrices" holds for all of them.
TEST(OptimizerByConfig, NormsAndBiasesDoNotDecay) {
  for (const std::string name : kNames) {
    const std::vector<double> after = trained({.name = name, .weight_decay = 0.5}, 0);
    EXPECT_LT(after[0], 1) << name;
    EXPECT_EQ(after[1], 1) << name;
  }
}

}  // namespace
}  // namespace brrr
