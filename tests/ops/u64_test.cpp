// u64 over its whole range: every op here is given values around 2^63, where the sign bit of an i64 would be, and
// 2^64 - 1. The expected values are those of numpy's uint64, which agree with arithmetic modulo 2^64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "brrr/ops/conv/pool.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/assign.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/index/index_select.h"
#include "brrr/ops/index/sort.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/compile.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using ::testing::ElementsAre;
using enum DType;

constexpr uint64_t kHalf = uint64_t{1} << 63;  // the first value that an i64 does not hold
constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

Tensor unsigneds(const std::vector<uint64_t>& values) {
  return from_values(values, {static_cast<int64_t>(values.size())});
}
std::vector<uint64_t> values_of(const Tensor& x) {
  EXPECT_EQ(x.dtype(), u64);
  return x.to_vector<uint64_t>();
}
std::vector<bool> truths(const Tensor& x) { return x.to_vector<bool>(); }
const std::vector<uint64_t> kEdges = {0, 1, kHalf - 1, kHalf, kMax};

TEST(U64, IsCreatedFromNothingAndFromNumbers) {
  EXPECT_THAT(values_of(zeros({2}, u64)), ElementsAre(0, 0));
  EXPECT_THAT(values_of(full({2}, 9223372036854775808.0, u64)), ElementsAre(kHalf, kHalf));
  EXPECT_THAT(values_of(full({1}, 1e30, u64)), ElementsAre(kMax)) << "floats saturate";
  EXPECT_THAT(values_of(arange(3, 9, 2, u64)), ElementsAre(3, 5, 7));
  EXPECT_THAT(values_of(tensor({1, 2}, u64)), ElementsAre(1, 2));
  EXPECT_EQ(values_of(unsigneds(kEdges)), kEdges);
  EXPECT_EQ(unsigneds({kMax}).item<uint64_t>(), kMax);
  EXPECT_EQ(unsigneds({kMax}).item<double>(), 18446744073709551616.0);
  EXPECT_EQ(*unsigneds({kHalf}).data<uint64_t>(), kHalf);
}

TEST(U64, PrintsAllItsDigits) {
  EXPECT_EQ(to_text(unsigneds({7, kMax})), "tensor([7, 18446744073709551615], u64[2] on cpu)");
}

TEST(U64, BecomesTheNearestFloat) {
  const Tensor x = unsigneds({kHalf, kHalf + (uint64_t{1} << 39), kHalf + (uint64_t{1} << 39) + 1,
                              kHalf + 1024, kHalf + 1025, kMax});
  EXPECT_THAT(cast(x, f32).to_vector<float>(),
              ElementsAre(9223372036854775808.0F, 9223372036854775808.0F, 9223373136366403584.0F,
                          9223372036854775808.0F, 9223372036854775808.0F, 18446744073709551616.0F));
  EXPECT_THAT(cast(x, f64).to_vector<double>(),
              ElementsAre(9223372036854775808.0, 9223372586610589696.0, 9223372586610589696.0,
                          9223372036854775808.0, 9223372036854777856.0, 18446744073709551616.0));
  EXPECT_THAT(cast(x, bf16).to_vector<float>(),
              ElementsAre(0x1p63F, 0x1p63F, 0x1p63F, 0x1p63F, 0x1p63F, 0x1p64F));
  EXPECT_EQ(cast(unsigneds({kMax}), f16).item<float>(), std::numeric_limits<float>::infinity());
  EXPECT_EQ(cast(unsigneds({kMax}), f8e4m3).item<float>(), 448);
}

TEST(U64, WrapsIntoOtherIntegersAndComesBack) {
  const Tensor x = unsigneds(kEdges);
  EXPECT_THAT(cast(x, i64).to_vector<int64_t>(), ElementsAre(0, 1, INT64_MAX, INT64_MIN, -1));
  EXPECT_EQ(values_of(cast(cast(x, i64), u64)), kEdges);
  EXPECT_THAT(cast(x, i32).to_vector<int64_t>(), ElementsAre(0, 1, -1, 0, -1));
  EXPECT_THAT(cast(x, u32).to_vector<int64_t>(), ElementsAre(0, 1, 4294967295, 0, 4294967295));
  EXPECT_THAT(cast(x, u8).to_vector<int64_t>(), ElementsAre(0, 1, 255, 0, 255));
  EXPECT_THAT(cast(x, u4).to_vector<int64_t>(), ElementsAre(0, 1, 15, 0, 15));
  EXPECT_THAT(truths(cast(x, boolean)), ElementsAre(false, true, true, true, true));
  EXPECT_THAT(values_of(cast(tensor({-1, 7}, i8), u64)), ElementsAre(kMax, 7));
  EXPECT_THAT(values_of(cast(tensor({-1, 7}, i4), u64)), ElementsAre(kMax, 7));
  EXPECT_THAT(values_of(cast(tensor({0, 1}, boolean), u64)), ElementsAre(0, 1));
}

TEST(U64, IsTruncatedAndSaturatedOutOfFloats) {
  const Tensor x = tensor({-1, 2.9, 9223372036854777856.0, 18446744073709549568.0, 2e19, NAN}, f64);
  EXPECT_THAT(values_of(cast(x, u64)), ElementsAre(0, 2, kHalf + 2048, kMax - 2047, kMax, 0));
  EXPECT_THAT(values_of(cast(tensor({9223373136366403584.0, 2e19}), u64)),
              ElementsAre(9223373136366403584U, kMax));
}

TEST(U64, SumsAndProductsWrap) {
  const Tensor x = unsigneds(kEdges);
  EXPECT_THAT(values_of(x + x), ElementsAre(0, 2, kMax - 1, 0, kMax - 1));
  EXPECT_THAT(values_of(x - 1), ElementsAre(kMax, 0, kHalf - 2, kHalf - 1, kMax - 1));
  EXPECT_THAT(values_of(x + -1), ElementsAre(kMax, 0, kHalf - 2, kHalf - 1, kMax - 1));
  EXPECT_THAT(values_of(x * x), ElementsAre(0, 1, 1, 0, 1));
  EXPECT_THAT(values_of(x * 3), ElementsAre(0, 3, kHalf - 3, kHalf, kMax - 2));
  EXPECT_THAT(values_of(-x), ElementsAre(0, kMax, kHalf + 1, kHalf, 1));
  EXPECT_THAT(values_of(square(x)), ElementsAre(0, 1, 1, 0, 1));
  EXPECT_THAT(values_of(pow(unsigneds({3, 2, 2, kMax}), unsigneds({40, 63, 64, kMax}))),
              ElementsAre(12157665459056928801U, kHalf, 0, kMax));
  Tensor y = unsigneds({kMax});
  y += 2;
  EXPECT_EQ(y.item<uint64_t>(), 1);
}

TEST(U64, DividesAsUnsigned) {
  const Tensor x = unsigneds(kEdges);
  EXPECT_THAT(values_of(floor_divide(x, 3)),
              ElementsAre(0, 0, 3074457345618258602U, 3074457345618258602U, 6148914691236517205U));
  EXPECT_THAT(values_of(floor_divide(x, kMax)), ElementsAre(0, 0, 0, 0, 1));
  EXPECT_THAT(values_of(remainder(x, 10)), ElementsAre(0, 1, 7, 8, 5));
  EXPECT_THAT(values_of(fmod(x, kMax)), ElementsAre(0, 1, kHalf - 1, kHalf, 0));
  EXPECT_THAT(values_of(remainder(x, kHalf)), ElementsAre(0, 1, kHalf - 1, 0, kHalf - 1));
  EXPECT_EQ((x / 2).dtype(), f32);
  EXPECT_EQ((x / 2).to_vector<float>()[4], 9223372036854775808.0F);
  EXPECT_EQ(error_of([&] { floor_divide(x, x); }),
            "floor_divide: element 0 of the divisor is 0, and integers have no NaN; mask it with "
            "where(), or cast to a float");
}

TEST(U64, ComparesAsUnsigned) {
  const Tensor x = unsigneds({0, kHalf - 1, kHalf, kMax}), y = unsigneds({1, kHalf, kHalf, 5});
  EXPECT_THAT(truths(x < y), ElementsAre(true, true, false, false));
  EXPECT_THAT(truths(x <= y), ElementsAre(true, true, true, false));
  EXPECT_THAT(truths(x > y), ElementsAre(false, false, false, true));
  EXPECT_THAT(truths(x >= y), ElementsAre(false, false, true, true));
  EXPECT_THAT(truths(equal(x, y)), ElementsAre(false, false, true, false));
  EXPECT_THAT(truths(not_equal(x, y)), ElementsAre(true, true, false, true));
  EXPECT_THAT(truths(x > 5), ElementsAre(false, true, true, true));
  EXPECT_THAT(truths(equal(x, kMax)), ElementsAre(false, false, false, true));
  EXPECT_THAT(truths(x >= kHalf), ElementsAre(false, false, true, true));
  EXPECT_THAT(values_of(maximum(x, y)), ElementsAre(1, kHalf, kHalf, kMax));
  EXPECT_THAT(values_of(minimum(x, y)), ElementsAre(0, kHalf - 1, kHalf, 5));
  EXPECT_THAT(values_of(maximum(x, 7)), ElementsAre(7, kHalf - 1, kHalf, kMax));
  EXPECT_THAT(values_of(clamp(x, {.low = 3, .high = 9223372036854775808.0})),
              ElementsAre(3, kHalf - 1, kHalf, kHalf));
  EXPECT_THAT(values_of(abs(x)), ElementsAre(0, kHalf - 1, kHalf, kMax));
  EXPECT_THAT(values_of(sign(x)), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(values_of(relu(x)), ElementsAre(0, kHalf - 1, kHalf, kMax));
  EXPECT_THAT(truths(logical_not(x)), ElementsAre(true, false, false, false));
}

TEST(U64, ScalarsBesideNarrowerTensorsKeepTheirValue) {
  const Tensor huge = full({}, 18446744073709549568.0, u64), x = tensor({1, 2}, u32);
  EXPECT_THAT(truths(x < huge), ElementsAre(true, true));
  EXPECT_THAT(truths(huge < x), ElementsAre(false, false));
  EXPECT_TRUE((huge > 5).item<bool>());
  EXPECT_EQ((x + huge).dtype(), u32) << "a scalar does not widen a tensor";
}

TEST(U64, FunctionsOfFloatsTakeItsValue) {
  EXPECT_FLOAT_EQ(sqrt(unsigneds({kHalf})).item<float>(), 3037000499.97605F);
  EXPECT_FLOAT_EQ(log(unsigneds({kMax})).item<float>(), 44.3614195558365F);
}

TEST(U64, ReducesInItsOwnType) {
  const Tensor x = unsigneds(kEdges);
  EXPECT_THAT(values_of(sum(x)), ElementsAre(kMax));
  EXPECT_THAT(values_of(sum(unsigneds({kMax - 1, 1}))), ElementsAre(kMax));
  EXPECT_THAT(values_of(prod(unsigneds({kHalf - 1, 2}))), ElementsAre(kMax - 1));
  EXPECT_THAT(values_of(cumsum(x)), ElementsAre(0, 1, kHalf, 0, kMax));
  EXPECT_THAT(values_of(max(x)), ElementsAre(kMax));
  EXPECT_THAT(values_of(min(unsigneds({kMax, kHalf, kHalf + 1}))), ElementsAre(kHalf));
  EXPECT_EQ(argmax(unsigneds({5, kHalf, kMax, 7})).item<int64_t>(), 2);
  EXPECT_EQ(argmin(unsigneds({kMax, 5, kHalf})).item<int64_t>(), 1);
  EXPECT_TRUE(any(x).item<bool>());
  EXPECT_FALSE(all(x).item<bool>());
}

TEST(U64, ReducesAlongEitherAxisAndManyElements) {
  const Tensor rows = reshape(unsigneds({1, kMax, kHalf, 3, 4, kHalf - 1}), {2, 3});
  EXPECT_THAT(values_of(max(rows, 0)), ElementsAre(3, kMax, kHalf));
  EXPECT_THAT(values_of(min(rows, 0)), ElementsAre(1, 4, kHalf - 1));
  EXPECT_THAT(values_of(max(rows, 1)), ElementsAre(kMax, kHalf - 1));
  EXPECT_THAT(values_of(sum(rows, 0)), ElementsAre(4, 3, kMax));
  const Tensor many = full({5000}, 9223372036854775808.0, u64) + arange(5000, u64);
  EXPECT_EQ(max(many).item<uint64_t>(), kHalf + 4999);
  EXPECT_EQ(min(many).item<uint64_t>(), kHalf);
  EXPECT_EQ(sum(many).item<uint64_t>(), 5000 * 4999 / 2) << "5000 times 2^63 is 0";
}

TEST(U64, SortsAsUnsigned) {
  const Tensor x = unsigneds({kHalf, 0, kMax, kHalf - 1});
  EXPECT_THAT(values_of(sort(x).values), ElementsAre(0, kHalf - 1, kHalf, kMax));
  EXPECT_THAT(argsort(x, 0, Order::descending).to_vector<int64_t>(), ElementsAre(2, 0, 3, 1));
  EXPECT_THAT(values_of(topk(x, 2).values), ElementsAre(kMax, kHalf));
}

TEST(U64, MovesThroughViewsIndicesAndJoins) {
  const Tensor x = reshape(unsigneds({kMax, 1, kHalf, 3}), {2, 2});
  EXPECT_THAT(values_of(transpose(x)), ElementsAre(kMax, kHalf, 1, 3));
  EXPECT_THAT(values_of(clone(transpose(x))), ElementsAre(kMax, kHalf, 1, 3));
  EXPECT_THAT(values_of(concat({x, slice(x, 0, {.stop = 1})}, 0)),
              ElementsAre(kMax, 1, kHalf, 3, kMax, 1));
  EXPECT_THAT(values_of(stack({x[0], x[1]}, 1)), ElementsAre(kMax, kHalf, 1, 3));
  EXPECT_THAT(values_of(where(x > 2, x, 0)), ElementsAre(kMax, 0, kHalf, 3));
  EXPECT_THAT(values_of(gather(x, 0, tensor({{1, 0}}, i64))), ElementsAre(kHalf, 1));
  EXPECT_THAT(values_of(index_select(x, 0, tensor({1}, i64))), ElementsAre(kHalf, 3));
  EXPECT_THAT(values_of(index_add(x, 0, tensor({0, 0}, i64), x)),
              ElementsAre(kMax + kMax + kHalf, 1 + 1 + 3, kHalf, 3));
  x[1].fill(18446744073709549568.0);
  EXPECT_THAT(values_of(x), ElementsAre(kMax, 1, kMax - 2047, kMax - 2047));
}

TEST(U64, MatrixProductsWrapAndPoolsCompareAsUnsigned) {
  const Tensor a = reshape(unsigneds({kMax, 2, kHalf, 1}), {2, 2}),
               b = reshape(unsigneds({3, 1, 5, kMax}), {2, 2});
  EXPECT_THAT(values_of(matmul(a, b)),
              ElementsAre(kMax * 3 + 10, kMax + 2 * kMax, kHalf * 3 + 5, kHalf + kMax));
  const Tensor plane = reshape(unsigneds({1, kHalf, kMax, 7}), {1, 1, 2, 2});
  EXPECT_THAT(values_of(max_pool2d(plane, {.kernel = 2})), ElementsAre(kMax));
}

TEST(U64, IsDrawnWithinTheRangeOfTheBounds) {
  const Tensor x = randint({1000}, RandomKey{.seed = 3}, 5, 9, {.dtype = u64});
  EXPECT_EQ(min(x).item<uint64_t>(), 5);
  EXPECT_EQ(max(x).item<uint64_t>(), 8);
  EXPECT_EQ(error_of([] { randint({1}, RandomKey{}, -1, 9, {.dtype = u64}); }),
            "randint: -1 .. 8 do not fit u64, which goes from 0 to 18446744073709551615; use a "
            "wider dtype");
}

TEST(U64, MixesWithUnsignedIntegersBoolsAndFloats) {
  const Tensor x = unsigneds({kMax});
  EXPECT_THAT(values_of(x - tensor({255}, u8)), ElementsAre(kMax - 255));
  EXPECT_THAT(values_of(tensor({1}, boolean) * x), ElementsAre(kMax));
  EXPECT_EQ((x + tensor({1})).dtype(), f32);
  EXPECT_EQ((x * tensor({0.5}, f64)).item<double>(), 9223372036854775808.0);
  EXPECT_EQ((x * 0.5).dtype(), f32);
}

// As PyTorch 2.15 does. numpy would go to f64 and lose digits.
TEST(U64, IsRefusedBesideSignedIntegers) {
  const Tensor x = unsigneds({1, 2});
  EXPECT_EQ(error_of([&] {
              x + tensor({1, 2}, i64);
            }),
            "add: no integer dtype holds the values of both i64 and u64; cast one of them first");
  EXPECT_EQ(error_of([&] {
              x < tensor({1, 2}, i8);
            }),
            "less: no integer dtype holds the values of both i8 and u64; cast one of them first");
  EXPECT_EQ(error_of([&] {
              tensor({1, 2}, i32) < full({}, 3, u64);
            }),
            "less: no integer dtype holds the values of both i32 and u64; cast one of them first")
      << "a scalar as well";
  EXPECT_EQ(
      error_of([&] {
        concat({x, tensor({1}, i16)});
      }),
      "concat: no integer dtype holds the values of both i16 and u64; cast one of them first");
}

TEST(U64, NumbersThatWouldBeMistakenAreRefused) {
  const Tensor x = unsigneds({1, 2});
  EXPECT_EQ(error_of([&] { x > -1; }),
            "greater: -1 stands beside a u64 tensor, which has no negative values; cast the tensor "
            "to i64 or to a float first");
  EXPECT_EQ(error_of([&] { floor_divide(x, -2); }),
            "floor_divide: -2 stands beside a u64 tensor, which has no negative values; cast the "
            "tensor to i64 or to a float first");
  EXPECT_EQ(error_of([] {
              tensor({1, 2}, i64) < kHalf;
            }),
            "less: 9223372036854775808 stands beside i64 and is above the 2^63 - 1 of i64; use a "
            "u64 or a float tensor");
  EXPECT_EQ((tensor({1}, f64) * kMax).item<double>(), 18446744073709551616.0);
}

TEST(U64, CompiledFunctionsGiveTheSameValues) {
  const auto function = [](const Tensor& x) {
    const Tensor half = floor_divide(x, 2) + kHalf;
    return where(half > kHalf + 5, remainder(half, kMax), maximum(x, 7));
  };
  const Tensor x = unsigneds({3, kHalf, kMax, 12});
  const std::vector<uint64_t> expected = {7, kHalf + (kHalf >> 1), 0, kHalf + 6};
  EXPECT_EQ(values_of(function(x)), expected);
  auto compiled = runtime::compile(function);
  EXPECT_EQ(values_of(compiled(x)), expected);
  auto largest = runtime::compile([](const Tensor& a) { return max(floor_divide(a, 1)); });
  EXPECT_EQ(largest(x).item<uint64_t>(), kMax);
}

}  // namespace
}  // namespace brrr
