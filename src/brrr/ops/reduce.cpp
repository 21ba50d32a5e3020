#include "brrr/ops/reduce.h"

#include <algorithm>
#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/ops/binary.h"
#include "brrr/ops/copy.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce_cpu.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/unary.h"
#include "brrr/ops/views.h"

namespace brrr {
namespace {

// All axes where none are named; counted from the front, sorted, each once.
Axes normalize_axes(const Axes& axes, int rank, std::string_view op) {
  Axes result;
  for (int i = 0; i < (axes.empty() ? rank : axes.size()); ++i) {
    const int axis = axes.empty() ? i : normalize_axis(axes[i], rank, op);
    check(!result.contains(axis), op, ": axis ", axis, " is named twice in ", axes);
    result.push_back(axis);
  }
  std::sort(result.begin(), result.end());
  return result;
}

Attrs reduce_attrs(const Tensor& x, const Axes& axes, KeepDims keep, std::string_view op) {
  return {{"axes", normalize_axes(axes, x.rank(), op)}, {"keep_dims", keep == KeepDims::yes}};
}

Shape reduced_shape(const Shape& shape, const Attrs& attrs) {
  Shape result;
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (!attrs.list("axes").contains(axis)) {
      result.push_back(shape[axis]);
    } else if (attrs.flag("keep_dims")) {
      result.push_back(1);
    }
  }
  return result;
}

int64_t reduced_length(const Shape& shape, const Attrs& attrs) {
  int64_t length = 1;
  for (int64_t axis : attrs.list("axes")) length *= shape[static_cast<int>(axis)];
  return length;
}

void require_axes(const InferCall& call) {
  for (int64_t axis : call.attrs.list("axes")) {
    check(axis >= 0 && axis < call.shape(0).size(), call.op.name, ": axis ", axis,
          " is out of range for shape ", call.shape(0));
  }
}

TensorTypes infer_sum(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  require_axes(call);
  return {{reduced_shape(call.shape(0), call.attrs),
           is_float(call.dtype(0)) ? call.dtype(0) : DType::i64}};
}

TensorTypes infer_mean(const InferCall& call) {
  check(is_float(call.dtype(0)), call.op.name, ": needs a float tensor, not ", call.dtype(0),
        "; cast it first");
  return infer_sum(call);
}

TensorTypes infer_extremum(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  require_axes(call);
  const Shape shape = reduced_shape(call.shape(0), call.attrs);
  check(reduced_length(call.shape(0), call.attrs) > 0 || numel(shape) == 0, call.op.name,
        ": shape ", call.shape(0), " has no elements along axes ", call.attrs.list("axes"),
        ", so there is no largest or smallest one");
  return {{shape, call.dtype(0)}};
}

TensorTypes infer_argmax(const InferCall& call) {
  TensorTypes types = infer_extremum(call);
  types[0].dtype = DType::i64;
  return types;
}

// One operation for each element that goes in.
Cost reduce_cost(const CostCall& call) {
  const int64_t count = numel(call.call.shape(0));
  return {.flops = count,
          .bytes_read = storage_bytes(call.call.dtype(0), count),
          .bytes_written = storage_bytes(call.outputs[0].dtype, numel(call.outputs[0].shape))};
}

// A result with its reduced axes back in place, as size 1.
Tensor with_kept_axes(const Tensor& reduced, const Shape& input_shape, const Attrs& attrs) {
  Shape shape = input_shape;
  for (int64_t axis : attrs.list("axes")) shape[static_cast<int>(axis)] = 1;
  return reshape(reduced, shape);
}

Tensors sum_grad(const GradCall& call) {
  const Tensor& x = call.input(0);
  return {expand(with_kept_axes(call.output_grad(0), x.shape(), call.attrs), x.shape())};
}

Tensors mean_grad(const GradCall& call) {
  const Tensor& x = call.input(0);
  const Tensor share =
      call.output_grad(0) / static_cast<double>(reduced_length(x.shape(), call.attrs));
  return {expand(with_kept_axes(share, x.shape(), call.attrs), x.shape())};
}

// Equal winners share the gradient.
Tensors extremum_grad(const GradCall& call) {
  const Tensor& x = call.input(0);
  const Tensor winner =
      cast(equal(x, with_kept_axes(call.output(0), x.shape(), call.attrs)), x.dtype());
  const Tensor dy = with_kept_axes(call.output_grad(0), x.shape(), call.attrs);
  return {winner * (dy / sum(winner, call.attrs.list("axes"), KeepDims::yes))};
}

KeepDims keep_of(const Attrs& attrs) {
  return attrs.flag("keep_dims") ? KeepDims::yes : KeepDims::no;
}

// Compositions of several steps keep their intermediate values in f32 at least.
Tensor widen(const Tensor& x) {
  return compute_type(x.dtype()) == ComputeType::f32 ? cast(x, DType::f32) : x;
}

Tensors var_compose(const ComposeCall& call) {
  const Tensor x = widen(call.input(0));
  const Axes& axes = call.attrs.list("axes");
  const Tensor centered = x - mean(x, axes, KeepDims::yes);
  const int64_t length = reduced_length(x.shape(), call.attrs);
  const double divisor =
      static_cast<double>(std::max<int64_t>(0, length - call.attrs.integer("correction")));
  return {cast(sum(square(centered), axes, keep_of(call.attrs)) / divisor, call.input(0).dtype())};
}

// Shifting by the row maximum keeps exp finite; an infinite maximum must not be subtracted, and rows
// without elements have none: their result is ln 0.
Tensor logsumexp_shift(const Tensor& x, const Attrs& attrs) {
  if (reduced_length(x.shape(), attrs) == 0) return zeros({}, {x.dtype(), x.device()});
  const Tensor largest = max(x, attrs.list("axes"), KeepDims::yes).detach();
  return where(abs(largest) <= finfo(largest.dtype()).max, largest, 0);
}

Tensors logsumexp_compose(const ComposeCall& call) {
  const Tensor x = widen(call.input(0));
  const Axes& axes = call.attrs.list("axes");
  const Tensor shift = logsumexp_shift(x, call.attrs);
  const Tensor total = log(sum(exp(x - shift), axes, KeepDims::yes)) + shift;
  return {cast(reshape(total, reduced_shape(x.shape(), call.attrs)), call.input(0).dtype())};
}

// Index by index: visits the elements of each output and folds them with `step` in f64.
template <typename Step>
Tensors reference_fold(const ComposeCall& call, DType dtype, double start, Step step,
                       double divisor = 1) {
  const Tensor& x = call.input(0);
  const Shape shape = reduced_shape(x.shape(), call.attrs);
  std::vector<double> totals(static_cast<size_t>(numel(shape)), start);
  const Axes& axes = call.attrs.list("axes");
  Layout into{.shape = x.shape(), .strides = Strides(x.rank(), 0)};
  for (int64_t axis = x.rank() - 1, stride = 1; axis >= 0; --axis) {
    const int a = static_cast<int>(axis);
    if (axes.contains(axis)) continue;
    into.strides[a] = stride;
    stride *= x.shape()[a];
  }
  const std::vector<double> values = x.to_vector<double>();
  size_t next = 0;
  for_each_element(
      into, [&](int64_t place) { step(totals[static_cast<size_t>(place)], values[next++]); });
  Tensor y = empty(shape, dtype);
  for (int64_t i = 0; i < y.numel(); ++i)
    store_float(y, i, totals[static_cast<size_t>(i)] / divisor);
  return {y};
}

Tensors argmax_reference(const ComposeCall& call) {
  const Tensor& x = call.input(0);
  // Both walks below visit in row-major order: the rows as the results lie, a row as argmax counts.
  Layout rows = x.layout(), row = x.layout();
  for (int axis = 0; axis < x.rank(); ++axis) {
    (call.attrs.list("axes").contains(axis) ? rows : row).shape[axis] = 1;
  }
  Tensor y = empty(reduced_shape(x.shape(), call.attrs), DType::i64);
  int64_t next = 0;
  for_each_element(rows, [&](int64_t start) {
    int64_t place = 0, best = 0;
    double largest = -INFINITY;
    row.offset = start;
    for_each_element(row, [&](int64_t element) {
      const double value = load_float(x, element);
      if (value > largest || place == 0) best = place, largest = value;
      ++place;
    });
    store_int(y, next++, best);
  });
  return {y};
}

std::vector<Sample> reduce_samples_with(const Attrs& extra, bool with_empty) {
  std::vector<Sample> samples;
  const auto add = [&](const Shape& shape, const Axes& axes, bool keep) {
    Attrs attrs{{"axes", axes}, {"keep_dims", keep}};
    for (const Attr& attr : extra) attrs.add(attr);
    samples.push_back({{sample_values(shape, 60 + static_cast<uint32_t>(samples.size()))}, attrs});
  };
  add({}, {}, false);
  add({5}, {0}, false);
  add({3, 70}, {1}, true);
  add({70, 3}, {0}, false);
  add({2, 3, 4, 5}, {1, 3}, false);
  add({2, 3, 4, 5}, {0, 2}, true);
  add({2, 3, 4}, {0, 1, 2}, false);
  add({3, 2500}, {1}, false);    // several tiles in a row
  add({2500, 150}, {0}, false);  // and down columns, in more than one block
  add({40000}, {0}, false);
  add({0, 3}, {1}, false);
  if (with_empty) add({3, 0}, {1}, true);
  return samples;
}

std::vector<Sample> argmax_samples() {
  const auto attrs = [](const Axes& axes, bool keep) -> Attrs {
    return {{"axes", axes}, {"keep_dims", keep}};
  };
  return {{{sample_values({7}, 80)}, attrs({0}, false)},
          {{sample_values({4, 6, 3}, 81)}, attrs({1}, true)},
          {{sample_values({4, 6, 3}, 82)}, attrs({0, 2}, false)},
          {{sample_values({30, 1500}, 83)}, attrs({1}, false)}};
}

}  // namespace

const OpDef sum_op{
    .name = "sum",
    .formula = "sum of elements",
    .kind = OpKind::reduce,
    .dtypes = kAnyDType,
    .infer = infer_sum,
    .cost = reduce_cost,
    .grad = sum_grad,
    .reference =
        [](const ComposeCall& call) {
          const DType dtype = is_float(call.input(0).dtype()) ? call.input(0).dtype() : DType::i64;
          return reference_fold(call, dtype, 0, [](double& total, double x) { total += x; });
        },
    .cpu = sum_cpu,
    .workspace = reduce_workspace,
    .samples = [] { return reduce_samples_with({}, true); }};

const OpDef mean_op{
    .name = "mean",
    .formula = "sum / count",
    .kind = OpKind::reduce,
    .infer = infer_mean,
    .cost = reduce_cost,
    .grad = mean_grad,
    .compose = [](const ComposeCall& call) -> Tensors {
      const double count = static_cast<double>(reduced_length(call.input(0).shape(), call.attrs));
      return {sum(call.input(0), call.attrs.list("axes"), keep_of(call.attrs)) / count};
    },
    .cpu = mean_cpu,
    .workspace = reduce_workspace,
    .samples = [] { return reduce_samples_with({}, false); }};

const OpDef max_op{.name = "max",
                   .formula = "largest element",
                   .kind = OpKind::reduce,
                   .dtypes = kAnyDType,
                   .infer = infer_extremum,
                   .cost = reduce_cost,
                   .grad = extremum_grad,
                   .grad_reads = {.inputs = 1, .outputs = 1},
                   .reference =
                       [](const ComposeCall& call) {
                         return reference_fold(
                             call, call.input(0).dtype(), -INFINITY,
                             [](double& best, double x) { best = std::max(best, x); });
                       },
                   .cpu = max_cpu,
                   .workspace = reduce_workspace,
                   .samples = [] { return reduce_samples_with({}, false); }};

const OpDef min_op{.name = "min",
                   .formula = "smallest element",
                   .kind = OpKind::reduce,
                   .dtypes = kAnyDType,
                   .infer = infer_extremum,
                   .cost = reduce_cost,
                   .grad = extremum_grad,
                   .grad_reads = {.inputs = 1, .outputs = 1},
                   .reference =
                       [](const ComposeCall& call) {
                         return reference_fold(
                             call, call.input(0).dtype(), INFINITY,
                             [](double& best, double x) { best = std::min(best, x); });
                       },
                   .cpu = min_cpu,
                   .workspace = reduce_workspace,
                   .samples = [] { return reduce_samples_with({}, false); }};

const OpDef var_op{.name = "var",
                   .formula = "sum((x - mean)^2) / (count - correction)",
                   .kind = OpKind::reduce,
                   .infer = infer_mean,
                   .compose = var_compose,
                   .samples = [] {
                     return reduce_samples_with({{"correction", int64_t{0}}}, false);
                   }};

const OpDef argmax_op{.name = "argmax",
                      .formula = "place of the largest element",
                      .kind = OpKind::reduce,
                      .dtypes = kAnyDType,
                      .infer = infer_argmax,
                      .cost = reduce_cost,
                      .reference = argmax_reference,
                      .cpu = argmax_cpu,
                      .samples = argmax_samples};

const OpDef logsumexp_op{.name = "logsumexp",
                         .formula = "ln sum exp x",
                         .kind = OpKind::reduce,
                         .infer = infer_mean,
                         .compose = logsumexp_compose,
                         .samples = [] { return reduce_samples_with({}, false); }};

Tensor sum(const Tensor& x, const Axes& axes, KeepDims keep) {
  return call_one(sum_op, {x}, reduce_attrs(x, axes, keep, "sum"));
}
Tensor mean(const Tensor& x, const Axes& axes, KeepDims keep) {
  return call_one(mean_op, {x}, reduce_attrs(x, axes, keep, "mean"));
}
Tensor max(const Tensor& x, const Axes& axes, KeepDims keep) {
  return call_one(max_op, {x}, reduce_attrs(x, axes, keep, "max"));
}
Tensor min(const Tensor& x, const Axes& axes, KeepDims keep) {
  return call_one(min_op, {x}, reduce_attrs(x, axes, keep, "min"));
}

Tensor var(const Tensor& x, const Axes& axes, KeepDims keep, int64_t correction) {
  Attrs attrs = reduce_attrs(x, axes, keep, "var");
  attrs.add({"correction", correction});
  return call_one(var_op, {x}, attrs);
}

Tensor logsumexp(const Tensor& x, const Axes& axes, KeepDims keep) {
  return call_one(logsumexp_op, {x}, reduce_attrs(x, axes, keep, "logsumexp"));
}

Tensor argmax(const Tensor& x, const Axes& axes, KeepDims keep) {
  return call_one(argmax_op, {x}, reduce_attrs(x, axes, keep, "argmax"));
}
Tensor argmax(const Tensor& x, int64_t axis, KeepDims keep) { return argmax(x, Axes{axis}, keep); }

}  // namespace brrr
