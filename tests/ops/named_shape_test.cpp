#include "brrr/ops/einops/named_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/brrr.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

// What a wrong shape says; there is nothing to say in a build without checks.
class NamedShape : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kShapeChecks) GTEST_SKIP() << "built with BRRR_SHAPE_CHECKS=OFF";
  }
};

TEST_F(NamedShape, BindsNamesAcrossTensors) {
  ShapeNames names;
  names.expect(ones({2, 3, 4}), "batch seq hidden");
  names.expect(ones({4, 5}), "hidden out");
  expect(ones({2, 5}), "batch out", names);
  EXPECT_EQ(
      error_of([&] {
        names.expect(ones({2, 3, 8}), "batch seq hidden");
      }),
      "shape check: \"hidden\" is 8 in f32[2, 3, 8] as \"batch seq hidden\", and 4 in f32[2, 3, "
      "4] as \"batch seq hidden\"\n  batch seq hidden\n            ^~~~~~");
  EXPECT_THAT(error_of([&] {
                expect(ones({6, 7}), "out new", names);
              }),
              AllOf(HasSubstr("\"out\" is 6 in f32[6, 7] as \"out new\", and 5 in f32[4, 5] as "
                              "\"hidden out\""),
                    EndsWith("\n  ^~~")));
}

TEST_F(NamedShape, ATensorThatDoesNotFitBindsNothing) {
  ShapeNames names;
  names.expect(ones({2}), "a");
  EXPECT_THROW(names.expect(ones({7, 3}), "b a"), Error);
  names.expect(ones({8}), "b");
}

TEST_F(NamedShape, KnowsNumbersWildcardsAndDots) {
  expect(ones({3, 5, 6}), "3 h w");
  expect(ones({3, 5, 6}), "_ _ _");
  expect(ones({3, 5, 6}), "... 6");
  expect(ones({3, 5, 6}), "3 ... 6");
  expect(ones({3, 6}), "3 ... 6");
  expect(tensor(1), "");
  expect(tensor(1), "...");
  expect(ones({4, 4}), "n n");
  EXPECT_THAT(error_of([] {
                expect(ones({4, 5, 6}), "3 h w");
              }),
              AllOf(HasSubstr("f32[4, 5, 6] has 4 where 3 is expected"), EndsWith("\n  ^")));
  EXPECT_THAT(error_of([] {
                expect(ones({4, 5}), "n n");
              }),
              HasSubstr("\"n\" is 5 in f32[4, 5] as \"n n\", and 4 before in the same shape"));
  EXPECT_THAT(error_of([] { expect(ones({4}), "a b"); }),
              AllOf(HasSubstr("f32[4] has 1 axes, and 2 are expected"), EndsWith("\n  ^~~")));
  EXPECT_THAT(error_of([] { expect(ones({4}), "a ... b"); }), HasSubstr("at least 2 are expected"));
  EXPECT_THAT(error_of([] { expect(tensor(1), "a"); }), HasSubstr("0 axes, and 1 is expected"));
}

TEST_F(NamedShape, RefusesMalformedSpecsAtRunTime) {
  const Tensor x = ones({2, 3});
  EXPECT_THAT(error_of([&] { expect(x, "a (b"); }),
              AllOf(HasSubstr("names, numbers, '_' and '...'"), EndsWith("\n    ^")));
  EXPECT_THAT(error_of([&] { expect(x, "a .. b"); }), HasSubstr("a single dot"));
  EXPECT_THAT(error_of([&] { expect(x, "... a ..."); }), HasSubstr("'...' may stand once"));
  EXPECT_THAT(error_of([&] { expect(x, "a 3b"); }), HasSubstr("not a number"));
  EXPECT_THAT(error_of([&] { expect(x, "a b c d e f g h i"); }), HasSubstr("at most 8 axes"));
}

// Every one of these is what a static_assert of Shaped asks.
static_assert(is_well_formed<"">);
static_assert(is_well_formed<"b s h">);
static_assert(is_well_formed<"  batch_1 ... Hidden ">);
static_assert(is_well_formed<"3 _ h w">);
static_assert(is_well_formed<"a b c d ... e f g h">);
static_assert(spec_fault<"b, s"> == SpecFault::character);
static_assert(spec_fault<"(b s)"> == SpecFault::character);
static_assert(spec_fault<"b -> s"> == SpecFault::character);
static_assert(spec_fault<"b . s"> == SpecFault::dot);
static_assert(spec_fault<"... b ..."> == SpecFault::second_dots);
static_assert(spec_fault<"2x"> == SpecFault::number);
static_assert(spec_fault<"99999999999999999999"> == SpecFault::number);
static_assert(spec_fault<"a b c d e f g h i"> == SpecFault::too_many);
static_assert(!is_well_formed<"b s (h">);

Tensor plain_sum(Shaped<"n n"> x) { return sum(x); }

TEST_F(NamedShape, ShapedChecksWhenItIsMade) {
  EXPECT_EQ(plain_sum(ones({3, 3})).item<float>(), 9);
  EXPECT_THAT(error_of([] { plain_sum(ones({3, 4})); }), HasSubstr("\"n\" is 4"));
  EXPECT_THAT(error_of([] { plain_sum(ones({3})); }), HasSubstr("2 are expected"));
}

TEST_F(NamedShape, CheckedBindsArgumentsAndResultTogether) {
  const auto project =
      checked([](Shaped<"b s h"> x, double scale, const Shaped<"h o">& w) -> Shaped<"b s o"> {
        return matmul(x, w) * scale;
      });
  EXPECT_EQ(project(ones({2, 3, 4}), 2, ones({4, 5})).shape(), (Shape{2, 3, 5}));
  EXPECT_THAT(error_of([&] {
                project(ones({2, 3, 4}), 2, ones({3, 5}));
              }),
              AllOf(HasSubstr("\"h\" is 3 in f32[3, 5]"), HasSubstr("4 in f32[2, 3, 4]")));
  const auto wrong = checked([](Shaped<"a b"> x) -> Shaped<"b a"> { return x; });
  EXPECT_THAT(error_of([&] { wrong(ones({2, 3})); }), HasSubstr("\"b\" is 2"));
  EXPECT_EQ(wrong(ones({2, 2})).shape(), (Shape{2, 2}));
  const auto pointer = checked(&plain_sum);
  EXPECT_THROW(pointer(ones({2, 3})), Error);
}

TEST_F(NamedShape, BindShapesComparesItsArguments) {
  const auto attend = [](Shaped<"b s d"> q, Shaped<"b t d"> k) {
    bind_shapes(q, k);
    return einsum("b s d, b t d -> b s t", {q, k});
  };
  EXPECT_EQ(attend(ones({2, 3, 4}), ones({2, 5, 4})).shape(), (Shape{2, 3, 5}));
  EXPECT_THAT(error_of([&] { attend(ones({2, 3, 4}), ones({1, 5, 4})); }), HasSubstr("\"b\" is 1"));
}

// In every build: a Shaped is a tensor.
TEST(Shaped, TakesPartInExpressions) {
  const Shaped<"n"> x = tensor({1, 2, 3});
  EXPECT_EQ(sum(x * 2 + x).item<float>(), 18);
  EXPECT_TRUE(shares_storage(x, Tensor(x)));
}

TEST(Shaped, ChecksCanBeTakenOut) {
  const std::string error = error_of([] { expect(ones({4}), "a b"); });
  EXPECT_EQ(error == "no error", !kShapeChecks);
}

}  // namespace
}  // namespace brrr
