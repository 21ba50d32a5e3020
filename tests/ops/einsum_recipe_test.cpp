// The second call of a pattern goes by the recipe of the first: the same values, whatever changed since.
#include "brrr/ops/einops/einsum_recipe.h"

#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/einops/einops.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

using einsum_plan::find_recipe;

Tensor values(const Shape& shape, uint32_t draw) {
  return normal(shape, RandomKey{.seed = 4, .stream = 3, .draw = draw});
}

TEST(EinsumRecipe, IsKeptForProductsOfViews) {
  const Tensor a = values({3, 5, 7}, 1), b = values({4, 7}, 2);
  const std::string_view pattern = "rb rs rk, ro rk -> rb rs ro";
  EXPECT_EQ(find_recipe(pattern, {{a, b}}), nullptr);
  const Tensor first = einsum(pattern, {a, b});
  ASSERT_NE(find_recipe(pattern, {{a, b}}), nullptr);
  EXPECT_EQ(einsum(pattern, {a, b}).to_vector<float>(), first.to_vector<float>());
  EXPECT_EQ(first.to_vector<float>(), matmul(a, transpose(b)).to_vector<float>());
  const Tensor other = values({3, 5, 7}, 3);  // other elements, the same layout
  EXPECT_EQ(einsum(pattern, {other, b}).to_vector<float>(),
            matmul(other, transpose(b)).to_vector<float>());
}

TEST(EinsumRecipe, ServesViewsAtAnyOffset) {
  const Tensor large = values({8, 6, 6}, 1), b = values({6, 6}, 2);
  for (int64_t i = 0; i < 8; ++i) {
    const Tensor a = select(large, 0, i);
    EXPECT_EQ(einsum("qi qk, qk qj -> qi qj", {a, b}).to_vector<float>(),
              matmul(a, b).to_vector<float>());
  }
}

TEST(EinsumRecipe, OtherStridesAreAnotherCall) {
  const Tensor a = values({6, 6}, 1), b = values({6, 6}, 2);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(einsum("wi wk, wk wj -> wi wj", {a, b}).to_vector<float>(),
              matmul(a, b).to_vector<float>());
    EXPECT_EQ(einsum("wi wk, wk wj -> wi wj", {transpose(a), b}).to_vector<float>(),
              matmul(transpose(a), b).to_vector<float>());
  }
}

TEST(EinsumRecipe, OneTensorTwiceKeepsNone) {
  const Tensor a = values({5, 5}, 1);
  for (int round = 0; round < 2; ++round)
    EXPECT_EQ(einsum("vi vk, vj vk -> vi vj", {a, a}).to_vector<float>(),
              matmul(a, transpose(a)).to_vector<float>());
  EXPECT_EQ(find_recipe("vi vk, vj vk -> vi vj", {{a, a}}), nullptr);
}

TEST(EinsumRecipe, GradientsStillFlow) {
  const Tensor a = values({4, 6}, 1), b = values({6, 3}, 2);
  einsum("ui uk, uk uj -> ui uj", {a, b});
  a.require_grad();
  const auto grads = grad(sum(einsum("ui uk, uk uj -> ui uj", {a, b})), {a});
  EXPECT_EQ(grads[0].to_vector<float>(), matmul(ones({4, 3}), transpose(b)).to_vector<float>());
}

}  // namespace
}  // namespace brrr
