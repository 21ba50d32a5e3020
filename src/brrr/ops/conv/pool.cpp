#include "brrr/ops/conv/pool.h"

#include <algorithm>
#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/index/pool_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/reduce/reduce_axes.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

WindowRule pool_rule(const Attrs& attrs, int i) {
  const Axes& padding = attrs.list("padding");
  return {.kernel = attrs.list("kernel")[i],
          .stride = attrs.list("stride")[i],
          .before = padding_before(padding, i),
          .after = padding_after(padding, i, 2),
          .partial = attrs.has("ceil_mode")};
}

// Padding on one side may be larger than on the other, as ONNX has it, as long as each window sees an
// element; the same on both sides is held to PyTorch's rule.
void require_half_padding(const WindowRule& rule, int axis, std::string_view op) {
  const int64_t kernel = rule.kernel;
  check(rule.before != rule.after || rule.before <= kernel / 2, op, ": padding ", rule.before,
        " on axis ", axis, " is more than half of the kernel of ", kernel,
        ", so a window could be all padding");
  check(rule.before < kernel && rule.after < kernel, op, ": padding ", rule.before, " before and ",
        rule.after, " after axis ", axis, " must be less than the kernel of ", kernel,
        ", so that no window is all padding");
}

Shape pooled_shape(const InferCall& call) {
  const std::string_view op = call.op.name;
  require_dtype(call, call.dtype(0));
  Shape shape = call.shape(0);
  check(shape.size() == 3 || shape.size() == 4, op, ": shape ", shape,
        " must be [channels, h, w] or [batch, channels, h, w]");
  for (int i = 0; i < 2; ++i) {
    const int axis = shape.size() - 2 + i;
    const WindowRule rule = pool_rule(call.attrs, i);
    check(shape[axis] > 0, op, ": shape ", shape, " has no elements along axis ", axis,
          ", so its windows would be all padding");
    shape[axis] = window_count(shape[axis], rule, axis, op);
    require_half_padding(rule, axis, op);
  }
  return shape;
}

TensorTypes infer_max_pool2d(const InferCall& call) {
  const Shape shape = pooled_shape(call);
  return {{shape, call.dtype(0)}, {shape, DType::i64}};
}
TensorTypes infer_avg_pool2d(const InferCall& call) {
  return {{pooled_shape(call), call.dtype(0)}};
}

// One comparison for each element of each window.
Cost max_pool2d_cost(const CostCall& call) {
  const Axes& kernel = call.call.attrs.list("kernel");
  const int64_t count = numel(call.outputs[0].shape);
  return {.flops = count * kernel[0] * kernel[1],
          .bytes_read = storage_bytes(call.call.dtype(0), numel(call.call.shape(0))),
          .bytes_written =
              storage_bytes(call.outputs[0].dtype, count) + storage_bytes(DType::i64, count)};
}

// The last two axes as one.
Shape flat_planes(Shape shape) {
  const int64_t width = shape.back();
  shape.pop_back();
  shape.back() *= width;
  return shape;
}

Tensors max_pool2d_grad(const GradCall& call) {
  const Tensor &x = call.input(0), &dy = call.output_grad(0);
  const Shape windows = flat_planes(dy.shape());
  const Tensor start = zeros(flat_planes(x.shape()), {x.dtype(), dy.device()});
  const Tensor places = reshape(call.output(1).detach(), windows);
  return {reshape(scatter_add(start, -1, places, reshape(dy, windows)), x.shape())};
}

Tensors max_pool2d_reference(const ComposeCall& call) {
  const Tensor& x = call.input(0);
  const Axes &kernel = call.attrs.list("kernel"), &stride = call.attrs.list("stride");
  const Axes& padding = call.attrs.list("padding");
  const int64_t height = x.dim(-2), width = x.dim(-1), planes = numel(x.shape()) / (height * width);
  const TypeRef type{&x.shape(), x.dtype(), false};
  const Shape shape = pooled_shape({max_pool2d_op, {&type, 1}, call.attrs});
  const int64_t rows = shape[shape.size() - 2], cols = shape.back();
  const Tensor values = empty(shape, x.dtype()), places = empty(shape, DType::i64);
  const std::vector<double> elements = x.to_vector<double>();
  for (int64_t window = 0; window < planes * rows * cols; ++window) {
    const int64_t plane = window / (rows * cols), row = window / cols % rows, col = window % cols;
    double largest = -INFINITY;
    int64_t best = -1;
    for (int64_t k = 0; k < kernel[0] * kernel[1]; ++k) {
      const int64_t i = row * stride[0] - padding[0] + k / kernel[1];
      const int64_t j = col * stride[1] - padding[1] + k % kernel[1];
      if (i < 0 || i >= height || j < 0 || j >= width) continue;
      const double value = elements[static_cast<size_t>((plane * height + i) * width + j)];
      if (best < 0 || value > largest) best = i * width + j, largest = value;
    }
    store_float(values, window, largest);
    store_int(places, window, best);
  }
  return {values, places};
}

// How far the last window of each axis reaches past the padding.
Axes overhang(const Shape& image, const Attrs& attrs) {
  Axes past;
  for (int i = 0; i < 2; ++i) {
    const WindowRule rule = pool_rule(attrs, i);
    const int axis = image.size() - 2 + i;
    const int64_t windows = window_count(image[axis], rule, axis, "avg_pool2d");
    const int64_t end = (windows - 1) * rule.stride + rule.kernel;
    past.push_back(std::max<int64_t>(0, end - (rule.before + image[axis] + rule.after)));
  }
  return past;
}

// Sums over windows, divided by how many of their elements count: a window summed over a plane of ones.
Tensors avg_pool2d_compose(const ComposeCall& call) {
  const Tensor& x = call.input(0);
  const Axes& padding = call.attrs.list("padding");
  const auto windows = [&](const Tensor& image) {
    return windows_of(image, call.attrs.list("kernel"), call.attrs.list("stride"), {1, 1});
  };
  const Axes past = overhang(x.shape(), call.attrs);
  const bool padding_counts = !call.attrs.has("count_include_pad");
  if (padding_counts && past == Axes{0, 0}) return {mean(windows(pad_image(x, padding)), {-2, -1})};
  const Tensor wide = widen(x);
  const Axes reach = padding_list({0, 0}, past);
  const auto padded = [&](const Tensor& image) { return pad_image(image, padding); };
  const auto extended = [&](const Tensor& image) { return pad_image(image, reach); };
  const Tensor plane = ones({x.dim(-2), x.dim(-1)}, {wide.dtype(), x.device()});
  const Tensor counted = padding_counts
                             ? extended(ones(padded(plane).shape(), {wide.dtype(), x.device()}))
                             : extended(padded(plane));
  const Tensor total = sum(windows(extended(padded(wide))), {-2, -1});
  return {cast(total / sum(windows(counted), {-2, -1}), x.dtype())};
}

// `image`: the shape that automatic padding goes by.
Attrs pool_attrs(const Pool2dOptions& options, const Shape& image) {
  const auto stride = [](int64_t given, int64_t kernel) { return given == 0 ? kernel : given; };
  const Axes kernel = axes_of(options.kernel);
  const Axes strides{stride(options.stride.height, kernel[0]),
                     stride(options.stride.width, kernel[1])};
  Axes before{options.padding.top, options.padding.left};
  Axes after{options.padding.bottom, options.padding.right};
  for (int i = 0; i < 2 && options.padding.automatic != AutoPad::none && image.size() >= 2; ++i) {
    const Padding1 same = automatic_padding(options.padding.automatic, image[image.size() - 2 + i],
                                            {.kernel = kernel[i], .stride = strides[i]});
    before[i] = same.before;
    after[i] = same.after;
  }
  Attrs attrs{{"kernel", kernel}, {"stride", strides}, {"padding", padding_list(before, after)}};
  if (options.ceil_mode) attrs.add({"ceil_mode", true});
  return attrs;
}
Attrs mean_attrs(const Pool2dOptions& options, const Shape& image) {
  Attrs attrs = pool_attrs(options, image);
  if (!options.count_include_pad) attrs.add({"count_include_pad", false});
  return attrs;
}

using AttrsOf = Attrs (*)(const Pool2dOptions&, const Shape&);
std::vector<Sample> pool_samples_with(AttrsOf attrs_of) {
  std::vector<Sample> samples;
  const auto add = [&](const Shape& shape, const Pool2dOptions& options) {
    const auto seed = 280 + static_cast<uint32_t>(samples.size());
    samples.push_back({{sample_values(shape, seed)}, attrs_of(options, shape)});
  };
  add({2, 4, 6}, {.kernel = 2});
  add({2, 2, 5, 7}, {.kernel = 3, .stride = 2, .padding = 1});
  add({1, 3, 5, 4}, {.kernel = {2, 3}, .stride = {1, 2}, .padding = {0, 1}});
  add({1, 1, 1, 1}, {.kernel = 1});
  add({0, 2, 4, 4}, {.kernel = 2});
  add({3, 9, 30, 25}, {.kernel = 3, .stride = 2, .padding = 1});
  add({1, 2, 6, 5}, {.kernel = 3, .stride = 2, .ceil_mode = true});
  add({2, 6, 5},
      {.kernel = {3, 4}, .stride = 3, .padding = {0, 2, 1, 0}, .count_include_pad = false});
  add({1, 1, 5, 8}, {.kernel = 4, .stride = 3, .padding = AutoPad::same_lower});
  add({1, 2, 7, 7},
      {.kernel = 2, .stride = 3, .padding = 1, .ceil_mode = true, .count_include_pad = false});
  return samples;
}
std::vector<Sample> max_pool_samples() { return pool_samples_with(pool_attrs); }
std::vector<Sample> avg_pool_samples() { return pool_samples_with(mean_attrs); }

}  // namespace

const OpDef max_pool2d_op{.name = "max_pool2d",
                          .formula = "largest element of every window, and its place in h x w",
                          .kind = OpKind::other,
                          .dtypes = kNumbers,
                          .infer = infer_max_pool2d,
                          .cost = max_pool2d_cost,
                          .grad = max_pool2d_grad,
                          .grad_reads = {.outputs = 0b10},
                          .reference = max_pool2d_reference,
                          .cpu = kernels::max_pool2d_cpu,
                          .samples = max_pool_samples};

const OpDef avg_pool2d_op{.name = "avg_pool2d",
                          .formula = "mean of every window",
                          .kind = OpKind::other,
                          .infer = infer_avg_pool2d,
                          .compose = avg_pool2d_compose,
                          .samples = avg_pool_samples};

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  return call_one(max_pool2d_op, {x}, pool_attrs(options, x.shape()));
}
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) {
  return call_one(avg_pool2d_op, {x}, mean_attrs(options, x.shape()));
}

}  // namespace brrr
