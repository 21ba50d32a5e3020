// Compiled with BRRR_SHAPE_CHECKS=0: the same program, without a check left in it.
#include "brrr/ops/einops/named_shape.h"

#include <gtest/gtest.h>

#include "brrr/brrr.h"

namespace brrr {
namespace {

static_assert(!kShapeChecks, "cmake/BrrrTests.cmake turns the checks off for this folder");

TEST(NoShapeChecks, NamesTakeAnySize) {
  ShapeNames names;
  EXPECT_NO_THROW(names.expect(ones({2, 3}), "batch hidden"));
  EXPECT_NO_THROW(names.expect(ones({5, 3}), "batch hidden"));
  EXPECT_NO_THROW(expect(ones({5, 4}), "hidden batch", names));
}

TEST(NoShapeChecks, SpecsAreNotEvenRead) {
  EXPECT_NO_THROW(expect(ones({2, 3}), "one"));
  EXPECT_NO_THROW(expect(ones({2, 3}), "~ is no spec"));
}

TEST(NoShapeChecks, FunctionsRunOnWhateverTheyGet) {
  const auto rows_of =
      checked([](Shaped<"rows columns"> x, Shaped<"columns"> other) -> Shaped<"rows"> {
        return sum(x) + sum(other);  // a scalar, where "rows" is promised
      });
  EXPECT_EQ(rows_of(ones({2, 3}), ones({4, 4})).item<float>(), 22);
  EXPECT_NO_THROW(bind_shapes(Shaped<"a b">(ones({2})), Shaped<"a">(ones({7}))));
}

}  // namespace
}  // namespace brrr
