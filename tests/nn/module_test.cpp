// What every module can do: names, counts, state dicts, freezing, visiting.
#include "brrr/nn/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/nn/layers.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/runtime/compile.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Net {
  Random random{1};
  Sequential layers;
  explicit Net(uint64_t seed = 1) : random(seed) {
    layers.add<Linear>(4, 3, random).add<Function>(relu).add<LayerNorm>(3);
    layers.add<Linear>(3, 2, random, LinearOptions{.bias = false});
  }
};

std::vector<NamedTensor> copies_of(const Module& module) {
  std::vector<NamedTensor> copies;
  for (const auto& [name, x] : module.state_dict()) copies.push_back({name, clone(x.detach())});
  return copies;
}

TEST(Module, Counts) {
  const Net net;
  EXPECT_EQ(net.layers.parameter_count(), 4 * 3 + 3 + 3 + 3 + 3 * 2);
  EXPECT_EQ(net.layers.counts().bytes, Bytes(27 * 4));
  std::vector<std::string> names;
  for (const NamedCount& child : net.layers.child_counts())
    names.push_back(join_text(child.name, "=", child.count));
  EXPECT_THAT(names, ElementsAre("0=15", "1=0", "2=6", "3=6"));
}

TEST(Module, LoadsWhatAnotherSaved) {
  const Net saved(1);
  Net loaded(2);
  EXPECT_NE(loaded.layers.parameters()[0].to_vector<float>(),
            saved.layers.parameters()[0].to_vector<float>());
  loaded.layers.load_state_dict(copies_of(saved.layers));
  for (size_t i = 0; i < saved.layers.parameters().size(); ++i)
    EXPECT_EQ(loaded.layers.parameters()[i].to_vector<float>(),
              saved.layers.parameters()[i].to_vector<float>());
}

TEST(Module, LoadConvertsTypes) {
  Net net;
  std::vector<NamedTensor> values = copies_of(net.layers);
  for (auto& [name, x] : values) x = cast(full(x.shape(), 0.5), DType::bf16);
  net.layers.load_state_dict(values);
  EXPECT_EQ(net.layers.parameters()[1].to_vector<float>(), (std::vector<float>{0.5, 0.5, 0.5}));
  EXPECT_EQ(net.layers.parameters()[1].dtype(), DType::f32);
}

TEST(Module, LoadNamesEveryFaultAndWritesNothing) {
  Net net;
  const std::vector<float> before = net.layers.parameters()[1].to_vector<float>();
  std::vector<NamedTensor> values = copies_of(net.layers);
  values[0].name = "0.wait";         // one missing, one unexpected
  values[1].tensor = ones({3});      // fits
  values[4].tensor = zeros({3, 2});  // transposed
  values.push_back(values[2]);       // twice
  const std::string message = error_of([&] { net.layers.load_state_dict(values); });
  EXPECT_THAT(message, AllOf(HasSubstr("1 missing: 0.weight"), HasSubstr("1 unexpected: 0.wait"),
                             HasSubstr("1 given twice: 2.weight"),
                             HasSubstr("3.weight (is f32[2, 3], given f32[3, 2])")));
  EXPECT_EQ(net.layers.parameters()[1].to_vector<float>(), before);
}

TEST(Module, LoadsAPartWhereAllowed) {
  Net net;
  net.layers.load_state_dict({{"0.bias", ones({3})}, {"other", ones({1})}},
                             {.allow_missing = true, .allow_unexpected = true});
  EXPECT_EQ(net.layers.parameters()[1].to_vector<float>(), (std::vector<float>{1, 1, 1}));
}

TEST(Module, FrozenParametersAreNotTrained) {
  Net net;
  net.layers.freeze("0");
  EXPECT_EQ(net.layers.counts().trainable, 12);
  std::vector<std::string> names;
  for (const NamedTensor& named : net.layers.trainable_parameters()) names.push_back(named.name);
  EXPECT_THAT(names, ElementsAre("2.weight", "2.bias", "3.weight"));
  const Tensor loss = sum(net.layers(ones({2, 4})));
  loss.backward();
  EXPECT_FALSE(net.layers.parameters()[0].grad().defined());
  EXPECT_TRUE(net.layers.parameters()[4].grad().defined());
  net.layers.unfreeze();
  EXPECT_EQ(net.layers.counts().trainable, 27);
  EXPECT_THAT(error_of([&] { net.layers.freeze("7"); }), HasSubstr("at or below \"7\""));
}

// "1" is not above "10".
TEST(Module, FreezeTakesWholeNames) {
  Random random(1);
  Sequential layers;
  for (int i = 0; i < 11; ++i) layers.add<LayerNorm>(2);
  layers.freeze("1");
  EXPECT_EQ(layers.counts().trainable, 10 * 4);
}

TEST(Module, AppliesToChildrenFirst) {
  Net net;
  std::vector<std::string> visited;
  net.layers.apply([&](const std::string& name, Module& module) {
    visited.push_back(name);
    if (auto* linear = dynamic_cast<Linear*>(&module))
      initialize(linear->weight, Init::ones(), net.random);
  });
  EXPECT_THAT(visited, ElementsAre("0", "1", "2", "3", ""));
  EXPECT_EQ(net.layers.parameters()[4].to_vector<float>(), (std::vector<float>(6, 1)));
}

TEST(Module, NullDeviceHasCountsAndNoBytes) {
  const Bytes before = ledger().live();
  ParameterScope nowhere({.dtype = DType::bf16, .device = Device::null()});
  Random random(1);
  const Linear layer(100'000, 100'000, random);
  EXPECT_EQ(layer.parameter_count(), 10'000'100'000);
  EXPECT_EQ(layer.counts().bytes, Bytes(20'000'200'000));
  EXPECT_EQ(ledger().live(), before);
}

TEST(Dropout, PassesThroughWithoutAKey) {
  const Dropout layer(0.5, 0);
  EXPECT_EQ(layer(ones({8})).to_vector<float>(), std::vector<float>(8, 1));
}

TEST(Dropout, KeyAndSiteDecide) {
  const Tensor x = ones({64});
  const auto dropped = [&](int64_t site, int64_t step) {
    return Dropout(0.5, site)(x, {.dropout_key = dropout_key(9, step)}).to_vector<float>();
  };
  EXPECT_EQ(dropped(0, 0), dropped(0, 0));
  EXPECT_NE(dropped(0, 0), dropped(1, 0));
  EXPECT_NE(dropped(0, 0), dropped(0, 1));
  // Site 0 draws with the step's own key, from the stream "dropout".
  const RandomKey key{.seed = 9, .stream = stream_id("dropout"), .draw = 0};
  const std::vector<float> chance = uniform({64}, key).to_vector<float>();
  for (size_t i = 0; i < chance.size(); ++i)
    EXPECT_EQ(dropped(0, 0)[i], chance[i] >= 0.5F ? 2.0F : 0.0F);
}

// The key is an input: one program, other numbers at every step.
TEST(Dropout, OneProgramServesAllSteps) {
  const Dropout layer(0.25, 3);
  auto step = runtime::compile(
      [&](const Tensor& x, const Tensor& key) { return layer(x, {.dropout_key = key}); });
  for (int64_t t : {0, 1, 2}) {
    const Tensor key = dropout_key(4, t), x = ones({100});
    EXPECT_EQ(step(x, key).to_vector<float>(), layer(x, {.dropout_key = key}).to_vector<float>());
  }
  EXPECT_EQ(step.function().programs(), 1);
}

}  // namespace
}  // namespace brrr
