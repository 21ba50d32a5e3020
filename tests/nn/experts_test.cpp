// What the fixtures do not show of a mixture of experts: room, balance, and its parts being one network.
#include "brrr/nn/experts.h"

#include <gtest/gtest.h>

#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "support/counter_values.h"
#include "support/error_of.h"

namespace brrr {
namespace {

Tensor tokens(int64_t count, int64_t width) {
  return from_values(counter_values("tokens", count * width, 1.0), {count, width});
}

// All experts alike, and all of them chosen: the mixture is one network.
TEST(Experts, OfOneKindAreOneNetwork) {
  ParameterScope f64({.dtype = DType::f64});
  Random random(1);
  Experts mixture(6, random, {.experts = 3, .top_k = 3, .hidden = 5, .capacity_factor = 0});
  SwiGlu network(6, 5, random);
  NoGrad values_only;
  for (const auto& [name, x] : mixture.named_parameters()) {
    for (const auto& [other, weight] : network.named_parameters()) {
      if (other == name + ".weight") x.copy_from(unsqueeze(weight, 0));
    }
  }
  const Tensor x = tokens(7, 6);
  const std::vector<double> mixed = mixture(x).to_vector<double>(),
                            single = network(x).to_vector<double>();
  for (size_t i = 0; i < single.size(); ++i) EXPECT_NEAR(mixed[i], single[i], 1e-14);
}

// With a router of zeros all tokens choose experts 0 and 1 (the first of equals), and only the earliest
// find room.
TEST(Experts, LateTokensPassByAFullExpert) {
  Random random(1);
  Experts mixture(4, random, {.experts = 4, .top_k = 1, .hidden = 3, .capacity_factor = 1});
  initialize(mixture.named_parameters()[3].tensor, Init::zeros(), random);
  EXPECT_EQ(mixture.named_parameters()[3].name, "router.weight");
  EXPECT_EQ(mixture.capacity(8), 2);
  const Tensor y = mixture(cast(tokens(8, 4), DType::f32));
  for (int64_t row = 0; row < 8; ++row)
    EXPECT_EQ(max(abs(y[row])).item<float>() > 0, row < 2) << row;
}

TEST(Experts, BalanceLossIsOneWhereAllAreUsedAlike) {
  Random random(1);
  const ExpertsOptions options{.experts = 4, .top_k = 4, .hidden = 3, .balance_weight = 0.5};
  Experts mixture(4, random, options);
  std::vector<Tensor> losses;
  ForwardInputs inputs;
  inputs.extra_losses = &losses;
  mixture(cast(tokens(8, 4), DType::f32), inputs);  // every token chooses every expert
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_NEAR(losses[0].item<double>(), 0.5, 1e-6);
}

// One of two devices has half of the networks; choices 0 and 1 go to the first, 2 and 3 to the second.
TEST(Experts, OfOneDeviceServeTheChoicesOfAll) {
  ParameterScope f64({.dtype = DType::f64});
  Random random(1);
  const ExpertsOptions all{.experts = 4, .top_k = 2, .hidden = 5, .shared_hidden = 3};
  Experts mixture(6, random, all), device(6, random, all);
  device.keep_share(2);
  EXPECT_EQ(mixture.parameter_count() - device.parameter_count(), 2 * 3 * 6 * 5);
  NoGrad values_only;
  const std::vector<NamedTensor> from = device.named_parameters(), to = mixture.named_parameters();
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].tensor.rank() < 3) {
      to[i].tensor.copy_from(from[i].tensor);
      continue;
    }
    for (int64_t e = 0; e < 4; ++e) to[i].tensor[e].copy_from(from[i].tensor[e / 2]);
  }
  const Tensor x = tokens(16, 6);
  const std::vector<double> whole = mixture(x).to_vector<double>(),
                            share = device(x).to_vector<double>();
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(share[i], whole[i], 1e-14);
  EXPECT_EQ(error_of([&] { mixture.keep_share(3); }), "experts: 3 devices do not divide 4 experts");
}

TEST(Experts, RoomIsAMultipleOfAnEvenShare) {
  Random random(1);
  const auto room = [&](double factor, int64_t count) {
    return Experts(4, random, {.experts = 8, .top_k = 2, .hidden = 3, .capacity_factor = factor})
        .capacity(count);
  };
  EXPECT_EQ(room(1.25, 64), 20);
  EXPECT_EQ(room(0, 64), 64);
  EXPECT_EQ(room(100, 64), 64);
  EXPECT_EQ(room(0.01, 4), 1);
}

}  // namespace
}  // namespace brrr
