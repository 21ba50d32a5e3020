// Functions of one operand that jump, have corners or answer a question: rounding, clamp, isnan.
#include <algorithm>
#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/elementwise/unary_function.h"
#include "brrr/ops/op_list.h"

namespace brrr {
namespace {

// Steps are flat wherever they have a derivative. The product keeps the result on the tape.
Tensors zero_grad(const GradCall& call) { return {dy_of(call) * 0.0}; }

TensorTypes infer_question(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  return {{call.shape(0), DType::boolean, call.inputs[0].weak}};
}

void require_whole_bound(const InferCall& call, std::string_view name) {
  const double bound = call.attrs.number(name);
  const IntLimits limits = iinfo(call.dtype(0));
  check(bound == std::floor(bound), "clamp: ", name, " = ", bound,
        " is not a whole number and x is ", call.dtype(0),
        "; cast x to a float or round the bound");
  check(name == "low" ? bound <= static_cast<double>(limits.max)
                      : bound >= static_cast<double>(limits.min),
        "clamp: ", name, " = ", bound, " leaves no ", call.dtype(0), ", which go from ", limits.min,
        " to ", limits.max, "; cast x to a wider dtype");
}

TensorTypes infer_clamp(const InferCall& call) {
  check(call.attrs.has("low") || call.attrs.has("high"),
        "clamp: has no bounds; give low, high or both");
  const TensorTypes types = infer_same(call);
  for (std::string_view name : {"low", "high"}) {
    if (!call.attrs.has(name)) continue;
    check(!std::isnan(call.attrs.number(name)), "clamp: ", name, " is NaN; give a number");
    if (is_integer(call.dtype(0))) require_whole_bound(call, name);
  }
  return types;
}

Tensors clamp_compose(const ComposeCall& call) {
  Tensor y = call.input(0);
  const Attrs& attrs = call.attrs;
  // A bound of x's own dtype: a float number would turn integers into floats.
  const auto bound = [&](std::string_view name) {
    return full({}, attrs.number(name), {.dtype = y.dtype(), .device = y.device()});
  };
  if (attrs.has("low")) y = maximum(y, bound("low"));
  if (attrs.has("high")) y = minimum(y, bound("high"));
  return {y};
}

// 1 between the bounds and 0 on them, as in PyTorch 2.15.
Tensors clamp_grad(const GradCall& call) {
  const Tensor x = x_of(call);
  Tensor dx = dy_of(call);
  if (call.attrs.has("low")) dx = where(x > call.attrs.number("low"), dx, 0);
  if (call.attrs.has("high")) dx = where(x < call.attrs.number("high"), dx, 0);
  return {dx};
}

// Truncation to 2^(exponent - 10), or to 2^-136 below the normal numbers of f32.
double to_tf32_scalar(const double* x, const Attrs&) {
  if (!std::isfinite(x[0]) || x[0] == 0) return x[0];
  const double step = std::ldexp(1.0, std::max(std::ilogb(x[0]), -126) - 10);
  return std::trunc(x[0] / step) * step;
}

// ---- samples -----------------------------------------------------------------------------------

// At least 0.1 from whole numbers, or with one half added from the halves where round jumps.
template <int kHalves>
std::vector<Sample> samples_between_steps() {
  std::vector<Sample> samples = unary_samples(-3, 3);
  for (Sample& sample : samples) {
    double* values = sample.inputs[0].data<double>();
    for (int64_t i = 0; i < sample.inputs[0].numel(); ++i) {
      const double whole = std::floor(values[i]);
      values[i] = whole + 0.1 + 0.8 * (values[i] - whole) + 0.5 * kHalves;
    }
  }
  return samples;
}

std::vector<Sample> samples_with_specials() {
  std::vector<Sample> samples = unary_samples(-3, 3);
  const double specials[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e300, 5e-324, 1.0};
  const Tensor x = empty({8}, DType::f64);
  std::copy(std::begin(specials), std::end(specials), x.data<double>());
  samples.push_back({{x}, {}});
  return samples;
}

std::vector<Sample> clamp_samples() {
  std::vector<Sample> samples =
      with_attrs(samples_between_steps<0>(), {{"low", -1.0}, {"high", 2.0}});
  samples.push_back({{sample_values({3, 5}, 20)}, {{"low", 0.0}}});
  samples.push_back({{sample_values({3, 5}, 21)}, {{"high", 0.0}}});
  samples.push_back({{sample_values({7}, 22)}, {{"low", 1.0}, {"high", 0.0}}});
  samples.push_back({{sample_values({7}, 23)}, {{"low", -INFINITY}, {"high", INFINITY}}});
  return samples;
}

template <kernels::Unary kFunction>
constexpr OpDef question(OpDef op) {
  op = number_function<kFunction>(op);
  op.dtypes = kAnyDType;
  op.infer = infer_question;
  op.samples = samples_with_specials;
  return op;
}

}  // namespace

constinit const OpDef floor_op = number_function<kernels::Unary::floor>(
    {.name = "floor",
     .formula = "largest whole number <= x",
     .grad = zero_grad,
     .scalar = [](const double* x, const Attrs&) { return std::floor(x[0]); },
     .samples = samples_between_steps<0>});

constinit const OpDef ceil_op = number_function<kernels::Unary::ceil>(
    {.name = "ceil",
     .formula = "smallest whole number >= x",
     .grad = zero_grad,
     .scalar = [](const double* x, const Attrs&) { return std::ceil(x[0]); },
     .samples = samples_between_steps<0>});

constinit const OpDef round_op = number_function<kernels::Unary::round>(
    {.name = "round",
     .formula = "nearest whole number, halves to even",
     .grad = zero_grad,
     .scalar = [](const double* x, const Attrs&) { return x[0] - std::remainder(x[0], 1.0); },
     .samples = samples_between_steps<1>});

constinit const OpDef clamp_op = [] {
  OpDef op = number_function<kernels::Unary::clamp>({.name = "clamp",
                                                     .formula = "min(max(x, low), high)",
                                                     .flops_per_element = 2,
                                                     .grad = clamp_grad,
                                                     .grad_reads = kReadsInput,
                                                     .compose = clamp_compose,
                                                     .samples = clamp_samples});
  op.infer = infer_clamp;
  return op;
}();

constinit const OpDef isnan_op = question<kernels::Unary::isnan>(
    {.name = "isnan", .formula = "x != x", .scalar = [](const double* x, const Attrs&) {
       return std::isnan(x[0]) ? 1.0 : 0.0;
     }});

constinit const OpDef isinf_op = question<kernels::Unary::isinf>(
    {.name = "isinf", .formula = "|x| == infinity", .scalar = [](const double* x, const Attrs&) {
       return std::isinf(x[0]) ? 1.0 : 0.0;
     }});

constinit const OpDef isfinite_op = question<kernels::Unary::isfinite>(
    {.name = "isfinite", .formula = "|x| < infinity", .scalar = [](const double* x, const Attrs&) {
       return std::isfinite(x[0]) ? 1.0 : 0.0;
     }});

constinit const OpDef logical_not_op = question<kernels::Unary::logical_not>(
    {.name = "logical_not", .formula = "x == 0", .scalar = [](const double* x, const Attrs&) {
       return x[0] == 0 ? 1.0 : 0.0;
     }});

// What a tensor core sees of an f32 operand in tf32 mode: it reads the top 19 bits of the register, so
// the low 13 are dropped and not rounded. No gradient: passes put it in front of products after the
// backward walk is traced, and a backend with such a mode takes the product and leaves it out.
constinit const OpDef to_tf32_op = [] {
  OpDef op = number_function<kernels::Unary::to_tf32>(
      {.name = "to_tf32",
       .formula = "x with 10 mantissa bits, the rest dropped",
       .flops_per_element = 0,
       .scalar = to_tf32_scalar,
       .samples = samples_with_specials});
  op.dtypes = dtype_set(DType::f32);
  return op;
}();

Tensor floor(const Tensor& x) { return call_one(floor_op, {x}); }
Tensor ceil(const Tensor& x) { return call_one(ceil_op, {x}); }
Tensor round(const Tensor& x) { return call_one(round_op, {x}); }
Tensor to_tf32(const Tensor& x) { return call_one(to_tf32_op, {x}); }
Tensor isnan(const Tensor& x) { return call_one(isnan_op, {x}); }
Tensor isinf(const Tensor& x) { return call_one(isinf_op, {x}); }
Tensor isfinite(const Tensor& x) { return call_one(isfinite_op, {x}); }
Tensor logical_not(const Tensor& x) { return call_one(logical_not_op, {x}); }

Tensor clamp(const Tensor& x, const ClampBounds& bounds) {
  Attrs attrs;
  if (bounds.low) attrs.add({"low", *bounds.low});
  if (bounds.high) attrs.add({"high", *bounds.high});
  return call_one(clamp_op, {x}, attrs);
}

}  // namespace brrr
