#include "brrr/ops/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/reduce/reduce_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce_axes.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

TensorTypes infer_extremum(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  require_axes(call);
  const Shape shape = reduced_shape(call.shape(0), call.attrs);
  check(reduced_length(call.shape(0), call.attrs) > 0 || numel(shape) == 0, call.op.name,
        ": shape ", call.shape(0), " has no elements along axes ", call.attrs.list("axes"),
        ", so there is no largest or smallest one");
  return {{shape, call.dtype(0)}};
}

TensorTypes infer_place(const InferCall& call) {
  TensorTypes types = infer_extremum(call);
  types[0].dtype = DType::i64;
  return types;
}

TensorTypes infer_question(const InferCall& call) {
  TensorTypes types = infer_sum(call);
  types[0].dtype = DType::boolean;
  return types;
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

// The place of the first element that no other `beats`.
template <typename Beats>
Tensors place_reference(const ComposeCall& call, Beats beats) {
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
    double winner = 0;
    row.offset = start;
    for_each_element(row, [&](int64_t element) {
      const double value = load_float(x, element);
      if (place == 0 || beats(value, winner)) best = place, winner = value;
      ++place;
    });
    store_int(y, next++, best);
  });
  return {y};
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

// Few elements decide: mostly zeros for any, mostly ones for all, so that both answers occur.
std::vector<Sample> question_samples(double usual, double rare) {
  std::vector<Sample> samples = reduce_samples_with({}, true);
  for (Sample& sample : samples) {
    double* values = sample.inputs[0].data<double>();
    for (int64_t i = 0; i < sample.inputs[0].numel(); ++i)
      values[i] = values[i] < 1.9 ? usual : rare;
  }
  return samples;
}
std::vector<Sample> any_samples() { return question_samples(0, 1); }
std::vector<Sample> all_samples() { return question_samples(1, 0); }

}  // namespace

const OpDef sum_op{
    .name = "sum",
    .formula = "sum of elements",
    .kind = OpKind::reduce,
    .fold = Fold::sum,
    .dtypes = kAnyDType,
    .infer = infer_sum,
    .cost = reduce_cost,
    .grad = sum_grad,
    .reference =
        [](const ComposeCall& call) {
          return Tensors{reference_fold(call, sum_dtype(call.input(0).dtype()), 0,
                                        [](double& total, double x) { total += x; })};
        },
    .cpu = kernels::sum_cpu,
    .workspace = kernels::reduce_workspace,
    .streams = {.inputs = 1},
    .samples = [] { return reduce_samples_with({}, true); }};

const OpDef mean_op{
    .name = "mean",
    .formula = "sum / count",
    .kind = OpKind::reduce,
    .fold = Fold::mean,
    .infer = infer_float_reduce,
    .cost = reduce_cost,
    .grad = mean_grad,
    .compose = [](const ComposeCall& call) -> Tensors {
      const double count = static_cast<double>(reduced_length(call.input(0).shape(), call.attrs));
      return {sum(call.input(0), call.attrs.list("axes"), keep_of(call.attrs)) / count};
    },
    .cpu = kernels::mean_cpu,
    .workspace = kernels::reduce_workspace,
    .streams = {.inputs = 1},
    .samples = [] { return reduce_samples_with({}, false); }};

const OpDef max_op{
    .name = "max",
    .formula = "largest element",
    .kind = OpKind::reduce,
    .fold = Fold::max,
    .precision = &kExactInEveryType,
    .dtypes = kAnyDType,
    .infer = infer_extremum,
    .cost = reduce_cost,
    .grad = extremum_grad,
    .grad_reads = {.inputs = 1, .outputs = 1},
    .reference =
        [](const ComposeCall& call) {
          return Tensors{reference_fold(call, call.input(0).dtype(), -INFINITY,
                                        [](double& best, double x) { best = std::max(best, x); })};
        },
    .cpu = kernels::max_cpu,
    .workspace = kernels::reduce_workspace,
    .streams = {.inputs = 1},
    .samples = [] { return reduce_samples_with({}, false); }};

const OpDef min_op{
    .name = "min",
    .formula = "smallest element",
    .kind = OpKind::reduce,
    .fold = Fold::min,
    .precision = &kExactInEveryType,
    .dtypes = kAnyDType,
    .infer = infer_extremum,
    .cost = reduce_cost,
    .grad = extremum_grad,
    .grad_reads = {.inputs = 1, .outputs = 1},
    .reference =
        [](const ComposeCall& call) {
          return Tensors{reference_fold(call, call.input(0).dtype(), INFINITY,
                                        [](double& best, double x) { best = std::min(best, x); })};
        },
    .cpu = kernels::min_cpu,
    .workspace = kernels::reduce_workspace,
    .streams = {.inputs = 1},
    .samples = [] { return reduce_samples_with({}, false); }};

const OpDef var_op{.name = "var",
                   .formula = "sum((x - mean)^2) / (count - correction)",
                   .kind = OpKind::reduce,
                   .infer = infer_float_reduce,
                   .compose = var_compose,
                   .samples = [] {
                     return reduce_samples_with({{"correction", int64_t{0}}}, false);
                   }};

const OpDef argmax_op{
    .name = "argmax",
    .formula = "place of the largest element",
    .kind = OpKind::reduce,
    .precision = &kExactInEveryType,
    .dtypes = kAnyDType,
    .infer = infer_place,
    .cost = reduce_cost,
    .reference = [](const ComposeCall& call) { return place_reference(call, std::greater<>()); },
    .cpu = kernels::argmax_cpu,
    .samples = argmax_samples};

const OpDef argmin_op{
    .name = "argmin",
    .formula = "place of the smallest element",
    .kind = OpKind::reduce,
    .precision = &kExactInEveryType,
    .dtypes = kAnyDType,
    .infer = infer_place,
    .cost = reduce_cost,
    .reference = [](const ComposeCall& call) { return place_reference(call, std::less<>()); },
    .cpu = kernels::argmin_cpu,
    .samples = argmax_samples};

const OpDef any_op{.name = "any",
                   .formula = "whether an element is not 0",
                   .kind = OpKind::reduce,
                   .precision = &kExactInEveryType,
                   .dtypes = kAnyDType,
                   .infer = infer_question,
                   .compose = [](const ComposeCall& call) -> Tensors {
                     const Tensor is_true = not_equal(call.input(0), 0);
                     return {sum(is_true, call.attrs.list("axes"), keep_of(call.attrs)) > 0};
                   },
                   .samples = any_samples};

const OpDef all_op{.name = "all",
                   .formula = "whether no element is 0",
                   .kind = OpKind::reduce,
                   .precision = &kExactInEveryType,
                   .dtypes = kAnyDType,
                   .infer = infer_question,
                   .compose = [](const ComposeCall& call) -> Tensors {
                     const Tensor is_false = equal(call.input(0), 0);
                     return {equal(sum(is_false, call.attrs.list("axes"), keep_of(call.attrs)), 0)};
                   },
                   .samples = all_samples};

const OpDef logsumexp_op{.name = "logsumexp",
                         .formula = "ln sum exp x",
                         .kind = OpKind::reduce,
                         .infer = infer_float_reduce,
                         .compose = logsumexp_compose,
                         .samples = [] { return reduce_samples_with({}, false); }};

Tensor sum(const Tensor& x, const ReduceAxes& axes, KeepDims keep) {
  return call_one(sum_op, {x}, reduce_attrs(x, axes, keep, "sum"));
}
Tensor mean(const Tensor& x, const ReduceAxes& axes, KeepDims keep) {
  return call_one(mean_op, {x}, reduce_attrs(x, axes, keep, "mean"));
}
Tensor max(const Tensor& x, const ReduceAxes& axes, KeepDims keep) {
  return call_one(max_op, {x}, reduce_attrs(x, axes, keep, "max"));
}
Tensor min(const Tensor& x, const ReduceAxes& axes, KeepDims keep) {
  return call_one(min_op, {x}, reduce_attrs(x, axes, keep, "min"));
}

Tensor var(const Tensor& x, const ReduceAxes& axes, KeepDims keep, int64_t correction) {
  Attrs attrs = reduce_attrs(x, axes, keep, "var");
  attrs.add({"correction", correction});
  return call_one(var_op, {x}, attrs);
}

Tensor logsumexp(const Tensor& x, const ReduceAxes& axes, KeepDims keep) {
  return call_one(logsumexp_op, {x}, reduce_attrs(x, axes, keep, "logsumexp"));
}

Tensor argmax(const Tensor& x, const ReduceAxes& axes, KeepDims keep) {
  return call_one(argmax_op, {x}, reduce_attrs(x, axes, keep, "argmax"));
}
Tensor argmin(const Tensor& x, const ReduceAxes& axes, KeepDims keep) {
  return call_one(argmin_op, {x}, reduce_attrs(x, axes, keep, "argmin"));
}

Tensor any(const Tensor& x, const ReduceAxes& axes, KeepDims keep) {
  return call_one(any_op, {x}, reduce_attrs(x, axes, keep, "any"));
}
Tensor all(const Tensor& x, const ReduceAxes& axes, KeepDims keep) {
  return call_one(all_op, {x}, reduce_attrs(x, axes, keep, "all"));
}

}  // namespace brrr
