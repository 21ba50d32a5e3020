// Optimizers by name: one list, from inside and outside of the tree.
#include "brrr/optim/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/ops/create/creation.h"
#include "support/error_of.h"

namespace brrr {
namespace {

std::vector<NamedTensor> null_parameters() {
  return {{"wte.weight", empty({10, 4}, DType::f32, Device::null())},
          {"h.0.weight", empty({4, 4}, DType::f32, Device::null())},
          {"h.0.bias", empty({4}, DType::f32, Device::null())}};
}

TEST(OptimizerRegistry, MakesEveryEntryOnTheNullDevice) {
  for (const OptimizerEntry* entry : optimizer_entries()) {
    EXPECT_FALSE(entry->help.empty()) << entry->name;
    const auto optimizer = make_optimizer(entry->name, null_parameters());
    Bytes of_parameters;
    for (size_t i = 0; i < optimizer->named_parameters().size(); ++i)
      of_parameters += optimizer->state_bytes_of(i);
    // What is left is the number of the step, in f64.
    const int64_t counters = (optimizer->state_bytes() - of_parameters).value();
    EXPECT_TRUE(counters == 0 || counters == 8) << entry->name << ": " << counters;
  }
}

// Muon keeps one moment of matrices between layers, and Adam's two of tables and vectors.
TEST(OptimizerRegistry, StatesAreOfTheirParameter) {
  const auto muon = make_optimizer("muon", null_parameters());
  EXPECT_EQ(muon->state_bytes_of(0), Bytes(2 * 4 * 40));
  EXPECT_EQ(muon->state_bytes_of(1), Bytes(1 * 4 * 16));
  EXPECT_EQ(muon->state_bytes_of(2), Bytes(2 * 4 * 4));
  const auto low = make_optimizer("adamw", null_parameters(), {.bf16_state = true});
  EXPECT_EQ(low->state_bytes_of(1), Bytes(2 * 2 * 16));
}

// "momentum" is sgd; without a momentum it keeps nothing.
TEST(OptimizerRegistry, SgdAndItsNamesAgree) {
  for (const char* name : {"sgd", "momentum", "nesterov"})
    EXPECT_EQ(make_optimizer(name, null_parameters())->state_bytes(), Bytes(4 * (40 + 16 + 4)))
        << name;
  for (const char* name : {"sgd", "momentum"})
    EXPECT_EQ(make_optimizer(name, null_parameters(), {.beta1 = 0.0})->state_bytes(), Bytes(0));
}

class Still : public Optimizer {
 public:
  using Optimizer::Optimizer;
  std::string_view name() const override { return "still"; }

 protected:
  Tensor direction(const Update& u) override { return zeros_like(u.gradient); }
};
constexpr OptimizerEntry kStill{.name = "still",
                                .help = "moves nothing",
                                .make = [](std::vector<NamedTensor> parameters,
                                           const OptimizerSettings&) -> std::unique_ptr<Optimizer> {
                                  return std::make_unique<Still>(std::move(parameters));
                                }};

TEST(OptimizerRegistry, TakesOnesFromOutsideAndNamesAllInErrors) {
  const std::string before = optimizer_names();
  EXPECT_EQ(before, "adamw, adam, sgd, momentum, nesterov, lion, muon, rmsprop or adagrad");
  EXPECT_EQ(error_of([] { make_optimizer("still", null_parameters()); }),
            "there is no optimizer \"still\"; use " + before);
  register_optimizer(kStill);
  EXPECT_EQ(make_optimizer("still", null_parameters())->name(), "still");
  EXPECT_EQ(error_of([] { register_optimizer(kStill); }),
            "an optimizer named \"still\" is registered already; choose another name");
}

}  // namespace
}  // namespace brrr
