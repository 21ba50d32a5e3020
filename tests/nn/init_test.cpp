// Initialisers against the moments and bounds that define them. 40000 draws: the standard error of a
// deviation is 0.35 %, so 2 % is beyond 5 sigma.
#include "brrr/nn/init.h"

#include <gtest/gtest.h>

#include <cmath>

#include "brrr/nn/attention.h"
#include "brrr/nn/models.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/reduce/reduce.h"
#include "support/error_of.h"

namespace brrr {
namespace {

constexpr int64_t kOut = 400, kIn = 100;

Tensor draw(const Init& init) {
  Random random(7);
  return init.make({kOut, kIn}, random);
}
double deviation(const Tensor& x) { return stddev(x).item<double>(); }
double largest(const Tensor& x) { return max(abs(x)).item<double>(); }

TEST(Init, Deviations) {
  const double xavier = std::sqrt(2.0 / (kIn + kOut)), kaiming = std::sqrt(2.0 / kIn);
  EXPECT_NEAR(deviation(draw(Init::normal(0.3))), 0.3, 0.02 * 0.3);
  EXPECT_NEAR(deviation(draw(Init::xavier_normal())), xavier, 0.02 * xavier);
  EXPECT_NEAR(deviation(draw(Init::xavier_uniform())), xavier, 0.02 * xavier);
  EXPECT_NEAR(deviation(draw(Init::kaiming_normal())), kaiming, 0.02 * kaiming);
  EXPECT_NEAR(deviation(draw(Init::kaiming_uniform())), kaiming, 0.02 * kaiming);
  EXPECT_NEAR(deviation(draw(Init::scaled_residual(0.02, 12))), 0.02 / std::sqrt(24.0), 1e-4);
}

TEST(Init, Bounds) {
  EXPECT_LE(largest(draw(Init::xavier_uniform())), std::sqrt(6.0 / (kIn + kOut)));
  EXPECT_LE(largest(draw(Init::torch_default())), 0.1);  // 1 / sqrt(100)
  EXPECT_GT(largest(draw(Init::torch_default())), 0.0999);
  EXPECT_EQ(largest(draw(Init::zeros())), 0);
  EXPECT_EQ(draw(Init::constant(2.5)).to_vector<float>()[7], 2.5F);
}

// 40000 normals reach past 3 sigma about a hundred times; cut ones never do, and come close.
TEST(Init, TruncatedNormalStopsAtThreeSigma) {
  const Tensor x = draw(Init::truncated_normal(0.02));
  EXPECT_LE(largest(x), 0.06);
  EXPECT_GT(largest(x), 0.059);
  EXPECT_GT(largest(draw(Init::normal(0.02))), 0.06);
  // The deviation of a normal cut at 3 sigma is 0.98658 of the whole.
  EXPECT_NEAR(deviation(x), 0.02 * 0.98658, 0.02 * 0.02);
}

TEST(Init, KernelsCountInTheFan) {
  Random random(1);
  const Tensor kernel = Init::kaiming_uniform().make({64, 32, 3, 3}, random);
  EXPECT_NEAR(deviation(kernel), std::sqrt(2.0 / (32 * 9)), 0.02 * std::sqrt(2.0 / (32 * 9)));
  EXPECT_NE(error_of([&] { Init::xavier_normal().make({5}, random); }).find("no fan"),
            std::string::npos);
}

TEST(Init, ResidualProjectionsStartSmallOrAtZero) {
  Random random(3);
  const Gpt2 scaled({.vocab = 16, .context = 8, .layers = 8, .heads = 2, .width = 64}, random);
  for (const auto& [name, x] : scaled.named_parameters()) {
    if (name.ends_with("c_proj.weight")) {
      EXPECT_NEAR(deviation(x), 0.02 / 4, 0.1 * 0.02 / 4) << name;
    } else if (x.rank() == 2 && x.numel() > 2000) {
      EXPECT_NEAR(deviation(x), 0.02, 0.1 * 0.02) << name;
    }
  }
  // Where blocks start as the identity, the model says the same with and without them.
  Random again(3), once_more(3);
  const Gpt2Config zero{.vocab = 16,
                        .context = 8,
                        .layers = 2,
                        .heads = 2,
                        .width = 8,
                        .residual_init = ResidualInit::zero};
  const Gpt2 model(zero, again);
  const Tensor tokens = from_values<int64_t>(std::vector<int64_t>{1, 2, 3}, {1, 3});
  std::vector<NamedTensor> activations;
  ForwardInputs inputs;
  inputs.largest_activations = &activations;
  model.logits(tokens, inputs);
  ASSERT_EQ(activations.size(), 2U);
  EXPECT_EQ(activations[0].name, "h.0");
  EXPECT_EQ(activations[0].tensor.item<float>(), activations[1].tensor.item<float>());
}

}  // namespace
}  // namespace brrr
