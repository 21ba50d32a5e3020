#include "brrr/tensor/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace brrr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Layout kTwoByThree = contiguous_layout({2, 3});

// Every part must be in the message of the Error.
template <typename... Parts>
auto refused(const Parts&... parts) {
  return ThrowsMessage<Error>(AllOf(HasSubstr(parts)...));
}

TEST(Layout, RowMajorStridesAndOffsets) {
  const Layout x = contiguous_layout({4, 4});
  EXPECT_EQ(x.strides, (Strides{4, 1}));
  EXPECT_EQ(x.offset + 1 * x.strides[0] + 2 * x.strides[1], 6) << "element (1, 2) of the lecture";
  EXPECT_EQ(contiguous_layout({2, 3, 5}).strides, (Strides{15, 5, 1}));
  EXPECT_EQ(contiguous_layout({}).strides, Strides{});
  EXPECT_EQ(contiguous_layout({2, 0, 3}).strides, (Strides{3, 3, 1}));
}

TEST(Layout, NumelMultipliesAndRefusesWhatItCannotCount) {
  EXPECT_EQ(numel({}), 1);
  EXPECT_EQ(numel({2, 3, 4}), 24);
  EXPECT_EQ(numel({5, 0}), 0);
  const int64_t big = int64_t{1} << 40;
  EXPECT_EQ(numel({0, big}), 0);
  EXPECT_THAT([&] { numel({big, big}); }, refused("1099511627776", "64-bit"));
  EXPECT_THAT([&] { numel({0, big, big}); }, refused("64-bit")) << "its strides would overflow";
  EXPECT_THAT([] { numel({2, -3}); }, refused("[2, -3]", "negative"));
}

TEST(Layout, ContiguousMeansRowMajorWithoutGaps) {
  EXPECT_TRUE(kTwoByThree.is_contiguous());
  EXPECT_FALSE(transpose_layout(kTwoByThree, 0, 1).is_contiguous());
  EXPECT_TRUE(select_layout(kTwoByThree, 0, 1).is_contiguous()) << "from any offset";
  EXPECT_FALSE(select_layout(kTwoByThree, 1, 0).is_contiguous());
  EXPECT_FALSE(expand_layout(contiguous_layout({1, 3}), {2, 3}).is_contiguous());
  EXPECT_TRUE((Layout{.shape = {1, 3}, .strides = {77, 1}}).is_contiguous())
      << "the stride of a single element is never used";
  EXPECT_TRUE((Layout{.shape = {0, 3}, .strides = {1, 5}}).is_contiguous()) << "nothing to lie";
  EXPECT_TRUE(contiguous_layout({}).is_contiguous());
}

TEST(Layout, NormalizeAxisCountsFromBothEnds) {
  EXPECT_EQ(normalize_axis(0, 3, "op"), 0);
  EXPECT_EQ(normalize_axis(-1, 3, "op"), 2);
  EXPECT_EQ(normalize_axis(-3, 3, "op"), 0);
  EXPECT_THAT([] { normalize_axis(3, 3, "sum"); }, refused("sum", "axis 3", "rank 3"));
  EXPECT_THAT([] { normalize_axis(-4, 3, "sum"); }, refused("sum", "axis -4", "rank 3"));
  EXPECT_THAT([] { normalize_axis(0, 0, "sum"); }, refused("scalar has no axes"));
}

TEST(Layout, ShapesBroadcastFromTheirLastAxis) {
  EXPECT_EQ(broadcast_shapes({2, 3}, {2, 3}, "add"), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({2, 3}, {}, "add"), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({3}, {2, 1}, "add"), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({4, 1, 5}, {3, 1}, "add"), (Shape{4, 3, 5}));
  EXPECT_EQ(broadcast_shapes({1}, {0}, "add"), Shape{0});
  EXPECT_THAT(
      [] {
        broadcast_shapes({2, 3}, {2, 4}, "add");
      },
      refused("add", "[2, 3]", "[2, 4]", "3 and 4", "axis -1", "neither is 1"));
  EXPECT_THAT([] { broadcast_shapes({0}, {2}, "add"); }, refused("[0]", "[2]"));
}

TEST(Layout, PermuteReordersShapeAndStrides) {
  const Layout x = permute_layout(contiguous_layout({2, 3, 4}), Axes{2, 0, -2});
  EXPECT_EQ(x.shape, (Shape{4, 2, 3}));
  EXPECT_EQ(x.strides, (Strides{1, 12, 4}));
  EXPECT_THAT([] { permute_layout(kTwoByThree, Axes{0}); }, refused("permute", "1", "[2, 3]"));
  EXPECT_THAT([] { permute_layout(kTwoByThree, Axes{1, -1}); }, refused("permute", "-1", "twice"));
  EXPECT_THAT([] { permute_layout(kTwoByThree, Axes{0, 2}); }, refused("permute", "axis 2"));
}

TEST(Layout, TransposeSwapsTwoAxes) {
  const Layout x = transpose_layout(kTwoByThree, 0, -1);
  EXPECT_EQ(x.shape, (Shape{3, 2}));
  EXPECT_EQ(x.strides, (Strides{1, 3}));
  EXPECT_EQ(transpose_layout(kTwoByThree, 1, 1), kTwoByThree);
  EXPECT_THAT([] { transpose_layout(kTwoByThree, 0, 2); }, refused("transpose", "axis 2"));
}

TEST(Layout, SliceBoundsAreThoseOfPython) {
  const Layout ten = contiguous_layout({10});
  struct Case {
    Slice slice;
    int64_t size, offset;
  };
  const int64_t end = INT64_MAX;
  for (const Case& c : {Case{{2, 5, 1}, 3, 2}, Case{{0, end, 3}, 4, 0}, Case{{-3, end, 1}, 3, 7},
                        Case{{0, -8, 1}, 2, 0}, Case{{-99, 99, 1}, 10, 0}, Case{{7, 3, 1}, 0, 7},
                        Case{{99, end, 1}, 0, 10}, Case{{1, 10, 4}, 3, 1},
                        Case{{3, end, end}, 1, 3}, Case{{INT64_MIN, end, 1}, 10, 0}}) {
    const Layout y = slice_layout(ten, 0, c.slice);
    EXPECT_EQ(y.shape[0], c.size) << c.slice.start << ':' << c.slice.stop << ':' << c.slice.step;
    EXPECT_EQ(y.offset, c.offset) << c.slice.start << ':' << c.slice.stop << ':' << c.slice.step;
  }
  EXPECT_EQ(slice_layout(ten, 0, {1, 10, 4}).strides, Strides{4});
  EXPECT_THAT([&] { slice_layout(ten, 0, {0, 5, 0}); }, refused("slice", "step 0", "positive"));
  EXPECT_THAT([&] { slice_layout(ten, 0, {5, 0, -1}); }, refused("slice", "step -1", "flip"));
  EXPECT_THAT([&] { slice_layout(ten, 1, {}); }, refused("slice", "axis 1"));
}

TEST(Layout, SelectDropsTheAxis) {
  const Layout column = select_layout(kTwoByThree, 1, -2);
  EXPECT_EQ(column.shape, Shape{2});
  EXPECT_EQ(column.strides, Strides{3});
  EXPECT_EQ(column.offset, 1);
  EXPECT_THAT([] { select_layout(kTwoByThree, 0, 2); },
              refused("select", "index 2", "axis 0", "size 2", "[2, 3]"));
  EXPECT_THAT([] { select_layout(kTwoByThree, 1, -4); }, refused("index -4", "size 3"));
  EXPECT_THAT([] { select_layout(contiguous_layout({0}), 0, 0); }, refused("size 0"));
}

TEST(Layout, ExpandRepeatsByStandingStill) {
  const Layout x = expand_layout(contiguous_layout({3, 1}), {2, 3, 4});
  EXPECT_EQ(x.shape, (Shape{2, 3, 4}));
  EXPECT_EQ(x.strides, (Strides{0, 1, 0}));
  EXPECT_EQ(expand_layout(contiguous_layout({3, 1}), {-1, 5}).shape, (Shape{3, 5}));
  EXPECT_EQ(expand_layout(contiguous_layout({1}), {0}).shape, Shape{0});
  EXPECT_THAT([] { expand_layout(kTwoByThree, {3}); }, refused("expand", "fewer axes", "[2, 3]"));
  EXPECT_THAT(
      [] {
        expand_layout(kTwoByThree, {4, 3});
      },
      refused("expand", "size 2", "to 4", "only sizes of 1"));
  EXPECT_THAT([] { expand_layout(kTwoByThree, {-1, 2, 3}); }, refused("negative"));
}

TEST(Layout, SqueezeAndUnsqueezeAreInverse) {
  for (int64_t axis : {0, 1, 2, -1, -3}) {
    const Layout wider = unsqueeze_layout(kTwoByThree, axis);
    EXPECT_EQ(wider.rank(), 3);
    EXPECT_TRUE(wider.is_contiguous());
    EXPECT_EQ(squeeze_layout(wider, axis), kTwoByThree);
  }
  EXPECT_THAT([] { squeeze_layout(kTwoByThree, 0); },
              refused("squeeze", "axis 0", "[2, 3]", "size 2", "select"));
  EXPECT_THAT([] { unsqueeze_layout(kTwoByThree, 3); }, refused("unsqueeze", "axis 3"));
  EXPECT_THAT([] { unsqueeze_layout(contiguous_layout(Shape(kMaxRank, 1)), 0); },
              refused("too many dimensions", "9", "at most 8"));
}

TEST(Layout, UnfoldMakesOverlappingWindows) {
  const Layout x = unfold_layout(contiguous_layout({8}), 0, 4, 2);  // 0..3, 2..5, 4..7
  EXPECT_EQ(x.shape, (Shape{3, 4}));
  EXPECT_EQ(x.strides, (Strides{2, 1}));
  EXPECT_EQ(unfold_layout(kTwoByThree, 0, 2, 1).shape, (Shape{1, 3, 2}));
  EXPECT_EQ(unfold_layout(kTwoByThree, 1, 0, 1).shape, (Shape{2, 4, 0}));
  EXPECT_THAT([] { unfold_layout(kTwoByThree, 1, 4, 1); },
              refused("unfold", "windows of 4", "axis 1", "size 3", "[2, 3]"));
  EXPECT_THAT([] { unfold_layout(kTwoByThree, 1, -1, 1); }, refused("unfold", "-1"));
  EXPECT_THAT([] { unfold_layout(kTwoByThree, 1, 2, 0); }, refused("unfold", "step 0", "positive"));
}

TEST(Layout, ViewsSplitAndMergeAxesWhereStridesAllow) {
  EXPECT_EQ(try_view_layout(kTwoByThree, {3, 2})->strides, (Strides{2, 1}));
  const Layout transposed = transpose_layout(kTwoByThree, 0, 1);
  EXPECT_FALSE(try_view_layout(transposed, {2, 3})) << "the case of the lecture";
  EXPECT_FALSE(try_view_layout(transposed, {6}));
  EXPECT_EQ(try_view_layout(transposed, {3, 1, 2})->strides, (Strides{1, 1, 3}));
  const Layout every_second = slice_layout(contiguous_layout({12}), 0, {0, 12, 2});
  EXPECT_EQ(try_view_layout(every_second, {2, 3})->strides, (Strides{6, 2}));
  const Layout repeated = expand_layout(contiguous_layout({1}), {6});
  EXPECT_EQ(try_view_layout(repeated, {2, 3})->strides, (Strides{0, 0}));
}

TEST(Layout, ResolveShapeFillsInOneSize) {
  EXPECT_EQ(resolve_shape({2, 6}, {3, -1}, "view"), (Shape{3, 4}));
  EXPECT_EQ(resolve_shape({}, {-1}, "view"), Shape{1});
  EXPECT_EQ(resolve_shape({0, 3}, {-1, 3}, "view"), (Shape{0, 3}));
  EXPECT_THAT([] { resolve_shape({2, 6}, {-1, -1}, "view"); }, refused("view", "more than one -1"));
  EXPECT_THAT(
      [] {
        resolve_shape({2, 6}, {5, -1}, "view");
      },
      refused("view", "12 elements", "[2, 6]", "[5, -1]"));
  EXPECT_THAT([] { resolve_shape({0}, {0, -1}, "view"); }, refused("view", "[0, -1]"));
  EXPECT_THAT(
      [] {
        resolve_shape({2, 6}, {5, 2}, "reshape");
      },
      refused("reshape", "12 elements", "[5, 2]", "10", "same number"));
  EXPECT_THAT([] { resolve_shape({6}, {-2, -3}, "view"); }, refused("negative"));
}

}  // namespace
}  // namespace brrr
