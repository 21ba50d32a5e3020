// A convolution is a product of matrices: every window becomes a column of channels x kernel elements,
// the weight has one row for each output channel. The gradient is that of the composition.
#include "brrr/ops/conv/conv.h"

#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

void require_channels(const InferCall& call) {
  const std::string_view op = call.op.name;
  const Shape &x = call.shape(0), &weight = call.shape(1);
  const int64_t groups = call.attrs.integer("groups");
  check(groups >= 1, op, ": ", groups, " groups; use a number >= 1");
  check(x[1] % groups == 0 && x[1] / groups == weight[1], op, ": x of shape ", x, " has ", x[1],
        " channels in ", groups, " groups, and the weight ", weight, " takes ", weight[1],
        " channels a group");
  check(weight[0] % groups == 0, op, ": ", weight[0], " output channels do not divide into ",
        groups, " groups");
  check(call.size() < 3 || call.shape(2) == Shape{weight[0]}, op, ": bias of shape ",
        call.size() < 3 ? Shape{} : call.shape(2), " must be [", weight[0], "]");
}

// For one axis of windows or two: as many as there are strides.
TensorTypes infer_conv(const InferCall& call) {
  const std::string_view op = call.op.name;
  const Shape &x = call.shape(0), &weight = call.shape(1);
  const Axes& stride = call.attrs.list("stride");
  const int rank = 2 + stride.size();
  check(x.size() == rank && weight.size() == rank, op, ": x has shape ", x, " and the weight ",
        weight, "; both must have ", rank, " axes: [batch, channels, ...] and [out, channels / ",
        "groups, ...]");
  require_channels(call);
  for (int input = 1; input < call.size(); ++input) {
    check(call.dtype(input) == call.dtype(0), op, ": x is ", call.dtype(0), " and the ",
          input == 1 ? "weight " : "bias ", call.dtype(input), "; cast one of them");
  }
  require_dtype(call, call.dtype(0));
  Shape shape{x[0], weight[0]};
  for (int i = 0; i < stride.size(); ++i) {
    const Axes& padding = call.attrs.list("padding");
    const WindowRule rule{.kernel = weight[i + 2],
                          .stride = stride[i],
                          .before = padding_before(padding, i),
                          .after = padding_after(padding, i, stride.size()),
                          .dilation = call.attrs.list("dilation")[i]};
    shape.push_back(window_count(x[i + 2], rule, i + 2, op));
  }
  return {{shape, call.dtype(0)}};
}

Attrs conv_attrs(const Axes& stride, const Axes& padding, const Axes& dilation, int64_t groups) {
  return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}};
}

// columns: [n, groups, channels * kh * kw, rows * cols], weight: [groups, out, channels * kh * kw].
Tensors conv2d_compose(const ComposeCall& call) {
  const Tensor &x = call.input(0), &weight = call.input(1);
  const int64_t n = x.dim(0), groups = call.attrs.integer("groups"), channels = weight.dim(1);
  const int64_t out = weight.dim(0), kernel_h = weight.dim(2), kernel_w = weight.dim(3);
  const Tensor padded = pad_image(x, call.attrs.list("padding"));
  const Tensor windows =
      windows_of(reshape(padded, {n, groups, channels, padded.dim(2), padded.dim(3)}),
                 {kernel_h, kernel_w}, call.attrs.list("stride"), call.attrs.list("dilation"));
  const int64_t rows = windows.dim(3), cols = windows.dim(4);
  const int64_t terms = channels * kernel_h * kernel_w;
  const Tensor columns =
      reshape(permute(windows, {0, 1, 2, 5, 6, 3, 4}), {n, groups, terms, rows * cols});
  const Tensor filters = reshape(weight, {groups, out / groups, terms});
  const Shape shape{n, out, rows, cols};
  if (call.inputs.size() < 3) return {reshape(matmul(filters, columns), shape)};
  // The bias is added to the f32 sums of low-precision factors, so that the result is rounded once.
  const DType dtype = x.dtype(),
              wide = compute_type(dtype) == ComputeType::f32 ? DType::f32 : dtype;
  const Tensor product = wide == dtype ? matmul(filters, columns)
                                       : call_one(matmul_op, {filters, columns}, {{"dtype", wide}});
  const Tensor bias = reshape(cast(call.input(2), wide), {out, 1, 1});
  return {cast(reshape(product, shape) + bias, dtype)};
}

Tensors conv1d_compose(const ComposeCall& call) {  // images of one row
  const auto of_row = [&](std::string_view name, int64_t one) {
    return Axes{one, call.attrs.list(name)[0]};
  };
  Tensors inputs{unsqueeze(call.input(0), 2), unsqueeze(call.input(1), 2)};
  if (call.inputs.size() == 3) inputs.push_back(call.input(2));
  const Axes& padding = call.attrs.list("padding");
  const Attrs attrs = conv_attrs(of_row("stride", 1),
                                 padding_list({0, padding[0]}, {0, padding_after(padding, 0, 1)}),
                                 of_row("dilation", 1), call.attrs.integer("groups"));
  return {squeeze(call_op(conv2d_op, inputs, attrs)[0], 2)};
}

Sample conv_sample(const Shape& x, const Shape& weight, const Attrs& attrs) {
  return {{sample_values(x, 270, -1, 1), sample_values(weight, 271, -1, 1)}, attrs};
}
Sample with_bias(Sample sample) {
  sample.inputs.push_back(sample_values({sample.inputs[1].dim(0)}, 272, -1, 1));
  return sample;
}

std::vector<Sample> conv1d_samples() {
  return {with_bias(conv_sample({2, 3, 7}, {4, 3, 3}, conv_attrs({1}, {1}, {1}, 1))),
          conv_sample({1, 4, 9}, {2, 2, 2}, conv_attrs({2}, {0}, {3}, 2)),
          conv_sample({1, 1, 1}, {1, 1, 1}, conv_attrs({1}, {0}, {1}, 1)),
          conv_sample({0, 2, 5}, {3, 2, 2}, conv_attrs({1}, {0}, {1}, 1)),
          conv_sample({2, 2, 6}, {3, 2, 4}, conv_attrs({1}, {1, 2}, {1}, 1)),
          conv_sample({3, 8, 1000}, {8, 1, 4}, conv_attrs({1}, {3}, {1}, 8))};
}

std::vector<Sample> conv2d_samples() {
  return {
      with_bias(conv_sample({2, 3, 5, 4}, {4, 3, 3, 2}, conv_attrs({1, 1}, {1, 0}, {1, 1}, 1))),
      with_bias(conv_sample({1, 4, 7, 6}, {6, 2, 2, 3}, conv_attrs({2, 1}, {0, 2}, {3, 2}, 2))),
      conv_sample({2, 3, 4, 4}, {3, 1, 3, 3}, conv_attrs({1, 1}, {1, 1}, {1, 1}, 3)),
      conv_sample({1, 2, 3, 3}, {5, 2, 1, 1}, conv_attrs({1, 1}, {0, 0}, {1, 1}, 1)),
      with_bias(
          conv_sample({1, 2, 4, 5}, {2, 2, 2, 3}, conv_attrs({2, 1}, {0, 1, 1, 3}, {1, 1}, 1))),
      conv_sample({1, 1, 1, 1}, {1, 1, 1, 1}, conv_attrs({1, 1}, {0, 0}, {1, 1}, 1)),
      conv_sample({0, 2, 4, 4}, {3, 2, 3, 3}, conv_attrs({1, 1}, {0, 0}, {1, 1}, 1)),
      conv_sample({2, 0, 3, 3}, {2, 0, 2, 2}, conv_attrs({1, 1}, {0, 0}, {1, 1}, 1)),
      with_bias(conv_sample({4, 6, 30, 28}, {8, 6, 3, 3}, conv_attrs({1, 1}, {1, 1}, {1, 1}, 1)))};
}

Padding1 automatic_axis(const Tensor& x, const Tensor& weight, int axis, AutoPad automatic,
                        int64_t stride, int64_t dilation) {
  return automatic_padding(automatic, x.dim(axis),
                           {.kernel = weight.dim(axis), .stride = stride, .dilation = dilation});
}

Tensor call_conv(const OpDef& op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                 const Attrs& attrs) {
  return bias.defined() ? call_one(op, {x, weight, bias}, attrs) : call_one(op, {x, weight}, attrs);
}

}  // namespace

const OpDef conv1d_op{.name = "conv1d",
                      .formula = "y[n, o, i] = sum x[n, c, stride i + dilation k] w[o, c, k]",
                      .kind = OpKind::contraction,
                      .dtypes = kNumbers,
                      .infer = infer_conv,
                      .compose = conv1d_compose,
                      .samples = conv1d_samples};

const OpDef conv2d_op{.name = "conv2d",
                      .formula = "conv1d over rows and columns",
                      .kind = OpKind::contraction,
                      .dtypes = kNumbers,
                      .infer = infer_conv,
                      .compose = conv2d_compose,
                      .samples = conv2d_samples};

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv1dOptions& options) {
  Padding1 padding = options.padding;
  if (padding.automatic != AutoPad::none && x.rank() == 3 && weight.rank() == 3)
    padding = automatic_axis(x, weight, 2, padding.automatic, options.stride, options.dilation);
  return call_conv(conv1d_op, x, weight, bias,
                   conv_attrs({options.stride}, padding_list({padding.before}, {padding.after}),
                              {options.dilation}, options.groups));
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options) {
  Padding1 rows(options.padding.top, options.padding.bottom);
  Padding1 cols(options.padding.left, options.padding.right);
  const Size2 &stride = options.stride, &dilation = options.dilation;
  const AutoPad automatic = options.padding.automatic;
  if (automatic != AutoPad::none && x.rank() == 4 && weight.rank() == 4) {
    rows = automatic_axis(x, weight, 2, automatic, stride.height, dilation.height);
    cols = automatic_axis(x, weight, 3, automatic, stride.width, dilation.width);
  }
  return call_conv(conv2d_op, x, weight, bias,
                   conv_attrs(axes_of(stride),
                              padding_list({rows.before, cols.before}, {rows.after, cols.after}),
                              axes_of(dilation), options.groups));
}

}  // namespace brrr
