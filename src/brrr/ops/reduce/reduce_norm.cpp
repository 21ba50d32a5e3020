// Norms and the standard deviation: roots of sums, whose slopes at 0 are chosen to be 0.
#include <algorithm>
#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce_axes.h"

namespace brrr {
namespace {

// y, and 1 where it is 0: a divisor whose numerator is 0 there.
Tensor or_one(const Tensor& y) { return where(equal(y, 0), 1, y); }

// ---- norm --------------------------------------------------------------------------------------

TensorTypes infer_norm(const InferCall& call) {
  const double p = call.attrs.number("p");
  check(p > 0, "norm: p = ", p, " must be above 0; count elements that are not 0 with sum(x != 0)");
  const TensorTypes types = infer_float_reduce(call);
  check(
      !std::isinf(p) || reduced_length(call.shape(0), call.attrs) > 0 || numel(types[0].shape) == 0,
      "norm: shape ", call.shape(0), " has no elements along axes ", call.attrs.list("axes"),
      ", so there is no largest one; use a finite p");
  return types;
}

Tensors norm_compose(const ComposeCall& call) {
  const Tensor x = widen(call.input(0));
  const Axes& axes = call.attrs.list("axes");
  const KeepDims keep = keep_of(call.attrs);
  const double p = call.attrs.number("p");
  const auto total = [&]() -> Tensor {
    if (p == 1) return sum(abs(x), axes, keep);
    if (p == 2) return sqrt(sum(square(x), axes, keep));
    if (std::isinf(p)) return max(abs(x), axes, keep);
    return pow(sum(pow(abs(x), p), axes, keep), 1 / p);
  };
  return {cast(total(), call.input(0).dtype())};
}

// The slope of the norm, per element: sign(x) (|x| / y)^(p - 1), and equal winners share for p = inf.
Tensor norm_slope(const Tensor& x, const Tensor& y, double p, const Axes& axes) {
  if (p == 1) return sign(x);
  if (p == 2) return x / or_one(y);
  if (std::isinf(p)) {
    const Tensor winner = cast(equal(abs(x), y), x.dtype());
    return sign(x) * (winner / sum(winner, axes, KeepDims::yes));
  }
  // |x| = 1 instead of 0 keeps a negative power finite; sign(0) = 0 makes the slope 0.
  return sign(x) * pow(or_one(abs(x)) / or_one(y), p - 1);
}

Tensors norm_grad(const GradCall& call) {
  const Tensor x = widen(call.input(0));
  const auto kept = [&](const Tensor& reduced) {
    return with_kept_axes(widen(reduced), x.shape(), call.attrs);
  };
  const Tensor slope =
      norm_slope(x, kept(call.output(0)), call.attrs.number("p"), call.attrs.list("axes"));
  return {cast(kept(call.output_grad(0)) * slope, call.input(0).dtype())};
}

std::vector<Sample> norm_samples() {
  std::vector<Sample> samples;
  for (double p : {2.0, 1.0, 3.5, static_cast<double>(INFINITY)}) {
    for (Sample& sample : reduce_samples_with({{"p", p}}, std::isfinite(p))) {
      double* values = sample.inputs[0].data<double>();  // away from the kink at 0
      for (int64_t i = 0; i < sample.inputs[0].numel(); ++i)
        values[i] += std::copysign(0.05, values[i]);
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

// ---- std ---------------------------------------------------------------------------------------

double divisor_of(const Shape& shape, const Attrs& attrs) {
  return static_cast<double>(
      std::max<int64_t>(0, reduced_length(shape, attrs) - attrs.integer("correction")));
}

Tensors std_compose(const ComposeCall& call) {
  const Tensor& x = call.input(0);
  return {cast(sqrt(var(widen(x), call.attrs.list("axes"), keep_of(call.attrs),
                        call.attrs.integer("correction"))),
               x.dtype())};
}

Tensors std_grad(const GradCall& call) {  // dx = dy (x - mean) / (std (count - correction))
  const Tensor x = widen(call.input(0));
  const auto kept = [&](const Tensor& reduced) {
    return with_kept_axes(widen(reduced), x.shape(), call.attrs);
  };
  const Tensor centered = x - mean(x, call.attrs.list("axes"), KeepDims::yes);
  const Tensor scale = kept(call.output_grad(0)) /
                       (or_one(kept(call.output(0))) * divisor_of(x.shape(), call.attrs));
  return {cast(centered * scale, call.input(0).dtype())};
}

// A single element has a deviation of 0, where differences see the kink and the rule says 0.
std::vector<Sample> std_samples() {
  std::vector<Sample> samples = reduce_samples_with({{"correction", int64_t{0}}}, false);
  std::erase_if(samples, [](const Sample& sample) {
    return reduced_length(sample.inputs[0].shape(), sample.attrs) == 1;
  });
  return samples;
}

}  // namespace

const OpDef norm_op{.name = "norm",
                    .formula = "(sum |x|^p)^(1/p)",
                    .kind = OpKind::reduce,
                    .infer = infer_norm,
                    .grad = norm_grad,
                    .grad_reads = {.inputs = 1, .outputs = 1},
                    .compose = norm_compose,
                    .samples = norm_samples};

const OpDef std_op{.name = "std",
                   .formula = "sqrt(sum((x - mean)^2) / (count - correction))",
                   .kind = OpKind::reduce,
                   .infer = infer_float_reduce,
                   .grad = std_grad,
                   .grad_reads = {.inputs = 1, .outputs = 1},
                   .compose = std_compose,
                   .samples = std_samples};

Tensor norm(const Tensor& x, double p, const ReduceAxes& axes, KeepDims keep) {
  Attrs attrs = reduce_attrs(x, axes, keep, "norm");
  attrs.add({"p", p});
  return call_one(norm_op, {x}, attrs);
}

Tensor stddev(const Tensor& x, const ReduceAxes& axes, KeepDims keep, int64_t correction) {
  Attrs attrs = reduce_attrs(x, axes, keep, "std");
  attrs.add({"correction", correction});
  return call_one(std_op, {x}, attrs);
}

}  // namespace brrr
