// Ops whose operands have different dtypes: products that store their f32 sums, norms with f32 weights.
#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/norm/layer_norm.h"
#include "brrr/ops/norm/rms_norm.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "support/error_of.h"

namespace brrr {
namespace {

Tensor values(const Shape& shape, uint32_t draw, DType dtype = DType::f32) {
  return cast(normal(shape, RandomKey{.seed = 5, .stream = 1, .draw = draw}), dtype);
}
Tensor wide(const Tensor& x) { return cast(x, DType::f32); }

TEST(MixedOperands, AProductStoresItsSumsInF32) {
  for (DType dtype : {DType::bf16, DType::f16, DType::f8e4m3}) {
    const Tensor a = values({3, 40}, 1, dtype), b = values({40, 5}, 2, dtype);
    const Tensor c = call_one(matmul_op, {a, b}, {{"dtype", DType::f32}});
    EXPECT_EQ(c.dtype(), DType::f32);
    EXPECT_EQ(c.to_vector<float>(), matmul(wide(a), wide(b)).to_vector<float>());
    EXPECT_EQ(cast(c, dtype).to_vector<float>(), matmul(a, b).to_vector<float>());
  }
}

TEST(MixedOperands, TheTwoEightBitTypesMultiply) {
  const Tensor a = values({3, 40}, 1, DType::f8e5m2), b = values({40, 5}, 2, DType::f8e4m3);
  EXPECT_EQ(call_one(matmul_op, {a, b}, {{"dtype", DType::bf16}}).to_vector<float>(),
            cast(matmul(wide(a), wide(b)), DType::bf16).to_vector<float>());
  EXPECT_NE(error_of([&] { matmul(a, b); }).find("cast one of them"), std::string::npos);
}

TEST(MixedOperands, ALinearTakesTheBiasInEitherType) {
  const Tensor x = values({2, 3, 8}, 1, DType::bf16), weight = values({5, 8}, 2, DType::bf16),
               bias = values({5}, 3);
  const Tensor y = call_one(linear_op, {x, weight, bias}, {{"dtype", DType::f32}});
  EXPECT_EQ(y.to_vector<float>(), linear(wide(x), wide(weight), bias).to_vector<float>());
  EXPECT_NE(error_of([&] { linear(x, weight, bias); }).find("cast it"), std::string::npos);
}

TEST(MixedOperands, AResultMustBeComputedInTheSameType) {
  const Tensor a = values({2, 2}, 1);
  for (DType dtype : {DType::f64, DType::i64})
    EXPECT_NE(error_of([&] {
                call_one(matmul_op, {a, a}, {{"dtype", dtype}});
              }).find("cannot store the product"),
              std::string::npos);
}

TEST(MixedOperands, NormsKeepF32WeightsBesideLowRows) {
  const Tensor x = values({6, 33}, 1, DType::bf16), weight = values({33}, 2),
               bias = values({33}, 3);
  const Tensor y = layer_norm(x, weight, bias, 1e-5);
  EXPECT_EQ(y.dtype(), DType::bf16);
  EXPECT_EQ(y.to_vector<float>(),
            cast(layer_norm(wide(x), weight, bias, 1e-5), DType::bf16).to_vector<float>());
  EXPECT_EQ(rms_norm(x, weight).to_vector<float>(),
            cast(rms_norm(wide(x), weight), DType::bf16).to_vector<float>());

  weight.require_grad();
  const Tensor dy = values({6, 33}, 4, DType::bf16);
  const Tensor found = grad(layer_norm(x, weight, bias, 1e-5), {weight}, {.seed = dy})[0],
               expected =
                   grad(layer_norm(wide(x), weight, bias, 1e-5), {weight}, {.seed = wide(dy)})[0];
  EXPECT_EQ(found.dtype(), DType::f32);
  EXPECT_EQ(found.to_vector<float>(), expected.to_vector<float>());
  EXPECT_NE(error_of([&] {
              layer_norm(wide(x), cast(weight, DType::bf16), bias, 1e-5);
            }).find("cast one of them"),
            std::string::npos);
}

}  // namespace
}  // namespace brrr
