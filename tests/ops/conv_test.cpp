#include "brrr/ops/conv/conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/autodiff/grad.h"
#include "brrr/base/thread_pool.h"
#include "brrr/graph/call.h"
#include "brrr/ops/conv/pool.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }
Tensor image(const Literal& rows) { return unsqueeze(unsqueeze(tensor(rows), 0), 0); }

TEST(Conv, IsACrossCorrelation) {
  const Tensor x = reshape(tensor({1, 2, 3, 4}), {1, 1, 4}),
               w = reshape(tensor({10, 1}), {1, 1, 2});
  EXPECT_THAT(values(conv1d(x, w)), ElementsAre(12, 23, 34));
  EXPECT_THAT(values(conv1d(x, w, tensor({0.5}), {.stride = 2})), ElementsAre(12.5, 34.5));
  EXPECT_THAT(values(conv1d(x, w, {}, {.padding = 1, .dilation = 2})), ElementsAre(2, 13, 24, 30));
}

TEST(Conv, KeepsGroupsApart) {
  const Tensor x = reshape(tensor({1, 2, 3, 4}), {1, 2, 2}),
               w = reshape(tensor({1, 10}), {2, 1, 1});
  EXPECT_THAT(values(conv1d(x, w, {}, {.groups = 2})), ElementsAre(1, 2, 30, 40));
}

// Both factors are 1 + 2^-7: the product is 1 + 2^-6 + 2^-14, and with the bias 2^-8 it lies just above the
// middle of two bf16 numbers. Rounded before the bias is added it would lie in the middle, and go down.
TEST(Conv, RoundsABf16ResultOnceWithItsBias) {
  const Tensor x = full({1, 1, 1}, 1.0078125, {.dtype = DType::bf16});
  const Tensor bias = full({1}, 0.00390625, {.dtype = DType::bf16});
  EXPECT_THAT(values(conv1d(x, x, bias)), ElementsAre(1.0234375));
  EXPECT_EQ(conv1d(x, x, bias).dtype(), DType::bf16);
  x.require_grad();
  bias.require_grad();
  const std::vector<Tensor> grads =
      grad(sum(conv1d(x, full({1, 1, 1}, 3, {.dtype = DType::bf16}), bias)), {x, bias});
  EXPECT_THAT(values(grads[0]), ElementsAre(3));
  EXPECT_THAT(values(grads[1]), ElementsAre(1));
  EXPECT_EQ(grads[0].dtype(), DType::bf16);
}

TEST(Conv, PadsEachSideForItself) {
  const Tensor x = reshape(tensor({1, 2, 3}), {1, 1, 3}), w = reshape(tensor({10, 1}), {1, 1, 2});
  EXPECT_THAT(values(conv1d(x, w, {}, {.padding = {0, 1}})), ElementsAre(12, 23, 30));
  EXPECT_THAT(values(conv1d(x, w, {}, {.padding = AutoPad::same_upper})), ElementsAre(12, 23, 30));
  EXPECT_THAT(values(conv1d(x, w, {}, {.padding = AutoPad::same_lower})), ElementsAre(1, 12, 23));
  const Tensor image = reshape(x, {1, 1, 1, 3}), one = ones({1, 1, 1, 1});
  EXPECT_THAT(values(conv2d(image, one, {}, {.padding = {0, 2, 1, 0}})),
              ElementsAre(0, 0, 1, 2, 3, 0, 0, 0, 0, 0));
  const Conv2dOptions strided{.stride = 2, .padding = AutoPad::same_upper};
  EXPECT_EQ(conv2d(ones({1, 1, 5, 4}), ones({1, 1, 3, 3}), {}, strided).shape(),
            (Shape{1, 1, 3, 2}));
  EXPECT_EQ(
      error_of([&] {
        conv1d(x, ones({1, 1, 6}), {}, {.padding = {0, 1}});
      }),
      "conv1d: a kernel of 6 elements, 1 apart, spans 6 and axis 2 has 3 with padding 0 before it "
      "and 1 after it; use a smaller kernel or more padding");
}

TEST(Conv, CountsItsFlopsOnTheNullDevice) {
  const TensorOptions null{.device = Device::null()};
  CostCounter counter;
  const Tensor y = conv2d(zeros({2, 3, 8, 8}, null), zeros({4, 3, 3, 3}, null), {}, {.padding = 1});
  EXPECT_EQ(y.shape(), (Shape{2, 4, 8, 8}));
  EXPECT_EQ(counter.contractions().flops, 2 * y.numel() * 27);
}

TEST(Conv, RefusesWithTheReason) {
  const auto conv = [](const Shape& x, const Shape& w, const Conv2dOptions& options = {}) {
    return error_of([&] { conv2d(zeros(x), zeros(w), {}, options); });
  };
  EXPECT_THAT(conv({1, 2, 3}, {1, 2, 3, 3}),
              HasSubstr("conv2d: x has shape [1, 2, 3] and the weight [1, 2, 3, 3]; both must have "
                        "4 axes"));
  EXPECT_THAT(
      conv({1, 4, 3, 3}, {2, 4, 1, 1}, {.groups = 2}),
      HasSubstr("conv2d: x of shape [1, 4, 3, 3] has 4 channels in 2 groups, and the weight "
                "[2, 4, 1, 1] takes 4 channels a group"));
  EXPECT_THAT(conv({1, 2, 3, 3}, {3, 1, 1, 1}, {.groups = 2}),
              HasSubstr("conv2d: 3 output channels do not divide into 2 groups"));
  EXPECT_THAT(conv({1, 1, 3, 3}, {1, 1, 2, 3}, {.dilation = {1, 2}}),
              HasSubstr("conv2d: a kernel of 3 elements, 2 apart, spans 5 and axis 3 has 3 with "
                        "padding 0 on both sides"));
  EXPECT_THAT(conv({1, 1, 3, 3}, {1, 1, 2, 2}, {.stride = 0}), HasSubstr("stride 0"));
  EXPECT_THAT(conv({1, 1, 3, 3}, {1, 1, 2, 2}, {.padding = -1}), HasSubstr("padding -1"));
  EXPECT_THAT(error_of([] {
                conv2d(zeros({1, 1, 2, 2}), zeros({3, 1, 1, 1}), zeros({2}));
              }),
              HasSubstr("conv2d: bias of shape [2] must be [3]"));
  EXPECT_THAT(error_of([] {
                conv1d(zeros({1, 1, 2}), zeros({1, 1, 1}, {DType::f64}));
              }),
              HasSubstr("conv1d: x is f32 and the weight f64; cast one of them"));
}

TEST(Pool, GradientGoesToTheFirstOfEquals) {
  const Tensor x = image({{1, 5, 5, 2}, {5, 0, 1, 5}});
  x.require_grad();
  const Tensor y = max_pool2d(x, {.kernel = 2});
  EXPECT_THAT(values(y), ElementsAre(5, 5));
  backward(y, {.seed = image({{1, 2}})});
  EXPECT_THAT(values(x.grad()), ElementsAre(0, 1, 2, 0, 0, 0, 0, 0));
}

TEST(Pool, PaddingNeverWinsAgainstAnElement) {
  const Tensor x = image({{-INFINITY, -3}, {-2, -INFINITY}});
  const Pool2dOptions options{.kernel = 2, .stride = 2, .padding = 1};
  EXPECT_THAT(values(max_pool2d(x, options)), ElementsAre(-INFINITY, -3, -2, -INFINITY));
  x.require_grad();
  backward(max_pool2d(x, options), {.seed = ones({1, 1, 2, 2})});
  EXPECT_THAT(values(x.grad()), ElementsAre(1, 1, 1, 1));
  const Tensor negative = full({1, 2, 2}, -4, {.dtype = DType::i32});
  EXPECT_THAT(values(max_pool2d(negative, options)), ElementsAre(-4, -4, -4, -4));
}

TEST(Pool, NanIsTheLargest) {
  EXPECT_THAT(values(max_pool2d(image({{1, NAN, 2, 3}, {4, 5, 6, 7}}), {.kernel = 2})),
              ElementsAre(IsNan(), 7));
}

TEST(Pool, MeanCountsThePadding) {
  const Tensor x = image({{4, 8}, {12, 16}});
  EXPECT_THAT(values(avg_pool2d(x, {.kernel = 2})), ElementsAre(10));
  EXPECT_THAT(values(avg_pool2d(x, {.kernel = 2, .padding = 1})), ElementsAre(1, 2, 3, 4));
}

TEST(Pool, CeilModeSeesWhatIsLeftOver) {
  const Tensor x = image({{1, 2, 3}});
  EXPECT_THAT(values(max_pool2d(x, {.kernel = {1, 2}})), ElementsAre(2));
  EXPECT_THAT(values(max_pool2d(x, {.kernel = {1, 2}, .ceil_mode = true})), ElementsAre(2, 3));
  EXPECT_THAT(values(avg_pool2d(x, {.kernel = {1, 2}, .ceil_mode = true})), ElementsAre(1.5, 3));
  // A third window would begin in the padding.
  const Pool2dOptions padded{.kernel = {1, 2}, .stride = 2, .padding = {0, 1}, .ceil_mode = true};
  EXPECT_THAT(values(max_pool2d(image({{1, 2, 3, 4}}), padded)), ElementsAre(1, 3, 4));
}

TEST(Pool, MeanMayLeaveThePaddingOut) {
  const Tensor x = image({{4, 8}, {12, 16}});
  EXPECT_THAT(values(avg_pool2d(x, {.kernel = 2, .padding = 1, .count_include_pad = false})),
              ElementsAre(4, 8, 12, 16));
}

TEST(Pool, RefusesWithTheReason) {
  EXPECT_THAT(error_of([] {
                max_pool2d(zeros({3, 3}), {});
              }),
              HasSubstr("max_pool2d: shape [3, 3] must be [channels, h, w] or"));
  EXPECT_THAT(error_of([] {
                avg_pool2d(zeros({1, 4, 4}), {.kernel = 2, .padding = 2});
              }),
              HasSubstr("avg_pool2d: padding 2 on axis 1 is more than half of the kernel of 2"));
  EXPECT_EQ(
      error_of([] {
        max_pool2d(zeros({1, 4, 4}), {.kernel = 2, .padding = {0, 0, 2, 0}});
      }),
      "max_pool2d: padding 0 before and 2 after axis 1 must be less than the kernel of 2, so that "
      "no window is all padding");
  EXPECT_THAT(error_of([] {
                max_pool2d(zeros({1, 0, 4}), {.kernel = 2, .padding = 1});
              }),
              HasSubstr("max_pool2d: shape [1, 0, 4] has no elements along axis 1"));
  EXPECT_THAT(error_of([] {
                avg_pool2d(zeros({1, 4, 4}, {DType::i32}), {});
              }),
              HasSubstr("avg_pool2d: does not take i32"));
}

TEST(PoolThreads, GiveTheSameGradients) {
  const Tensor x = sample_values({6, 5, 40, 30}, 1), w = sample_values({4, 5, 3, 3}, 2);
  x.require_grad();
  std::vector<double> expected;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    const Tensor y =
        avg_pool2d(max_pool2d(conv2d(x, w, {}, {.padding = 1}), {.kernel = 3, .stride = 2}), {});
    const std::vector<double> dx = values(grad(y, {x}, {.seed = ones(y.shape(), {y.dtype()})})[0]);
    if (threads == 1) expected = dx;
    EXPECT_EQ(dx, expected);
  }
  set_num_threads(available_cores());
}

}  // namespace
}  // namespace brrr
