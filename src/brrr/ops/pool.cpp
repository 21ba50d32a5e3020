#include "brrr/ops/pool.h"

#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/index.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/pool_cpu.h"
#include "brrr/ops/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/views.h"

namespace brrr {
namespace {

Shape pooled_shape(const InferCall& call) {
  const std::string_view op = call.op.name;
  require_dtype(call, call.dtype(0));
  Shape shape = call.shape(0);
  check(shape.size() == 3 || shape.size() == 4, op, ": shape ", shape,
        " must be [channels, h, w] or [batch, channels, h, w]");
  for (int i = 0; i < 2; ++i) {
    const int axis = shape.size() - 2 + i;
    const int64_t kernel = call.attrs.list("kernel")[i], padding = call.attrs.list("padding")[i];
    const WindowRule rule{kernel, call.attrs.list("stride")[i], padding};
    check(shape[axis] > 0, op, ": shape ", shape, " has no elements along axis ", axis,
          ", so its windows would be all padding");
    shape[axis] = window_count(shape[axis], rule, axis, op);
    check(padding <= kernel / 2, op, ": padding ", padding, " on axis ", axis,
          " is more than half of the kernel of ", kernel, ", so a window could be all padding");
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

Tensors avg_pool2d_compose(const ComposeCall& call) {
  const Tensor padded = pad_image(call.input(0), call.attrs.list("padding"));
  return {mean(windows_of(padded, call.attrs.list("kernel"), call.attrs.list("stride"), {1, 1}),
               {-2, -1})};
}

Attrs pool_attrs(const Pool2dOptions& options) {
  const auto stride = [](int64_t given, int64_t kernel) { return given == 0 ? kernel : given; };
  return {{"kernel", axes_of(options.kernel)},
          {"stride", Axes{stride(options.stride.height, options.kernel.height),
                          stride(options.stride.width, options.kernel.width)}},
          {"padding", axes_of(options.padding)}};
}

std::vector<Sample> pool_samples() {
  return {
      {{sample_values({2, 4, 6}, 280)}, pool_attrs({.kernel = 2})},
      {{sample_values({2, 2, 5, 7}, 281)}, pool_attrs({.kernel = 3, .stride = 2, .padding = 1})},
      {{sample_values({1, 3, 5, 4}, 282)},
       pool_attrs({.kernel = {2, 3}, .stride = {1, 2}, .padding = {0, 1}})},
      {{sample_values({1, 1, 1, 1}, 283)}, pool_attrs({.kernel = 1})},
      {{sample_values({0, 2, 4, 4}, 284)}, pool_attrs({.kernel = 2})},
      {{sample_values({3, 9, 30, 25}, 285)}, pool_attrs({.kernel = 3, .stride = 2, .padding = 1})}};
}

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
                          .cpu = max_pool2d_cpu,
                          .samples = pool_samples};

const OpDef avg_pool2d_op{.name = "avg_pool2d",
                          .formula = "mean of every window",
                          .kind = OpKind::other,
                          .infer = infer_avg_pool2d,
                          .compose = avg_pool2d_compose,
                          .samples = pool_samples};

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  return call_one(max_pool2d_op, {x}, pool_attrs(options));
}
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) {
  return call_one(avg_pool2d_op, {x}, pool_attrs(options));
}

}  // namespace brrr
