#include "brrr/ops/elementwise/binary.h"

#include <algorithm>
#include <cmath>

#include "brrr/kernels/cpu/elementwise/convert_cpu.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary_function.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

constexpr GradReads kReadsBoth{.inputs = 0b11};

// Gradients for both operands from their formulas; `make_a` and `make_b` run only where wanted.
template <typename MakeA, typename MakeB>
Tensors pair_grads(const GradCall& call, MakeA make_a, MakeB make_b) {
  Tensors grads(2);
  if (call.wants(0)) grads[0] = reduce_like(make_a(), call.input(0));
  if (call.wants(1)) grads[1] = reduce_like(make_b(), call.input(1));
  return grads;
}

// The operand that loses gets no gradient, and a tie shares it. Neither loses against a NaN: both get
// all of it, as in PyTorch, so that a NaN is not followed by innocent zeros.
Tensors extremum_grad(const GradCall& call, const Tensor& a_loses, const Tensor& b_loses) {
  const Tensor& dy = call.output_grad(0);
  const Tensor half = 0.5 * cast(equal(call.input(0), call.input(1)), dy.dtype());
  return pair_grads(
      call, [&] { return dy * (1.0 - (cast(a_loses, dy.dtype()) + half)); },
      [&] { return dy * (1.0 - (cast(b_loses, dy.dtype()) + half)); });
}

Tensors pow_grad(const GradCall& call) {
  const Tensor &a = call.input(0), &b = call.input(1), &y = call.output(0),
               &dy = call.output_grad(0);
  return pair_grads(
      call,
      // b a^(b-1), and 0 for a^0 even where a is 0
      [&] { return where(equal(b, 0), 0, dy * (b * pow(a, b - 1))); },
      // a^b ln a, and 0 for 0^b where b >= 0
      [&] { return where(equal(a, 0), where(b >= 0, 0, dy * y * log(a)), dy * y * log(a)); });
}

// a - n b with a whole n, so the gradients are dy and -n dy; n = (a - y) / b up to rounding.
Tensors modulo_grad(const GradCall& call) {
  const Tensor &a = call.input(0), &b = call.input(1), &dy = call.output_grad(0);
  return pair_grads(
      call, [&] { return dy; }, [&] { return -dy * round((a - call.output(0)) / b); });
}

// Flat wherever it has a derivative.
Tensors floor_divide_grad(const GradCall& call) {
  const Tensor zero = call.output_grad(0) * 0.0;
  return pair_grads(
      call, [&] { return zero; }, [&] { return zero; });
}

// Before anything is written: integers have no result for a divisor of 0.
void require_no_zero(const KernelCall& call, const Operand& divisor) {
  const Layout* layout = divisor.layout;
  const kernels::LoopNest nest = kernels::make_nest(divisor.shape(), {&layout, 1});
  int64_t values[kTileElements];
  for (int64_t begin = 0; begin < divisor.count(); begin += kTileElements) {
    const int64_t count = std::min(kTileElements, divisor.count() - begin);
    int64_t* next = values;
    kernels::for_each_run(
        nest, 0, begin, count, [&](int64_t position, int64_t run, int64_t stride) {
          kernels::load_elements(divisor.dtype, divisor.base, layout->offset + position, stride,
                                 run, ComputeType::i64, next);
          next += run;
        });
    const int64_t* zero = std::find(values, values + count, 0);
    check(
        zero == values + count, call.op.name, ": element ", begin + (zero - values),
        " of the divisor is 0, and integers have no NaN; mask it with where(), or cast to a float");
  }
}

void modulo_cpu(const KernelCall& call) {
  if (call.output(0).count() > 0 && !is_float(call.output(0).dtype))
    require_no_zero(call, call.input(1));
  kernels::run_elementwise(call);
}

TensorTypes infer_where(const InferCall& call) {
  check(call.dtype(0) == DType::boolean, "where: the condition must be bool, not ", call.dtype(0),
        "; compare it with something, as in x > 0");
  const Shape values = broadcast_shapes(call.shape(1), call.shape(2), "where");
  TensorType type{broadcast_shapes(call.shape(0), values, "where"),
                  promote_types(call.inputs.subspan(1), call.op.name)};
  require_dtype(call, type.dtype);
  return {type};
}

Tensors where_grad(const GradCall& call) {
  const Tensor &condition = call.input(0), &dy = call.output_grad(0);
  Tensors grads(3);
  if (call.wants(1)) grads[1] = reduce_like(where(condition, dy, 0), call.input(1));
  if (call.wants(2)) grads[2] = reduce_like(where(condition, 0, dy), call.input(2));
  return grads;
}

std::vector<Sample> pow_samples() {
  std::vector<Sample> samples = binary_samples(1.1, 2.5);
  for (Sample& sample : samples) {
    double* exponent = sample.inputs[1].data<double>();
    for (int64_t i = 0; i < sample.inputs[1].numel(); ++i) exponent[i] -= 1.9;
  }
  return samples;
}

std::vector<Sample> div_samples() {
  std::vector<Sample> samples = binary_samples(-2, 2);
  for (Sample& sample : samples) {
    double* divisor = sample.inputs[1].data<double>();
    for (int64_t i = 0; i < sample.inputs[1].numel(); ++i)
      divisor[i] += divisor[i] < 0 ? -0.5 : 0.5;
  }
  return samples;
}

// Divisors of 1 to 3: none of them is 0 as an integer, signed or not.
std::vector<Sample> modulo_samples() {
  std::vector<Sample> samples = binary_samples(-2, 2);
  for (Sample& sample : samples) {
    double* divisor = sample.inputs[1].data<double>();
    for (int64_t i = 0; i < sample.inputs[1].numel(); ++i)
      divisor[i] = std::fabs(divisor[i]) + 1.05;
    double* divided = sample.inputs[0].data<double>();
    for (int64_t i = 0; i < sample.inputs[0].numel(); ++i) divided[i] *= 4;
  }
  return samples;
}

// Quotients at least a quarter from whole numbers, where the function jumps: the divisors are within 1 % of 2.
std::vector<Sample> floor_divide_samples() {
  std::vector<Sample> samples = binary_samples(-2, 2);
  for (Sample& sample : samples) {
    double* divisor = sample.inputs[1].data<double>();
    for (int64_t i = 0; i < sample.inputs[1].numel(); ++i) divisor[i] = 2 + 0.01 * divisor[i];
    double* divided = sample.inputs[0].data<double>();
    for (int64_t i = 0; i < sample.inputs[0].numel(); ++i) {
      const double whole = std::floor(divided[i]);
      divided[i] = 2 * (whole + 0.3 + 0.4 * (divided[i] - whole));
    }
  }
  return samples;
}

std::vector<Sample> where_samples() {
  std::vector<Sample> samples;
  for (Sample& pair : binary_samples(-2, 2)) {
    const Shape shape = broadcast_shapes(pair.inputs[0].shape(), pair.inputs[1].shape(), "where");
    samples.push_back({{sample_mask(shape, 7), pair.inputs[0], pair.inputs[1]}, {}});
  }
  samples.push_back(
      {{sample_mask({4, 1}, 8), sample_values({3}, 9), sample_values({4, 3}, 10)}, {}});
  return samples;
}

template <kernels::Binary kFunction>
constexpr OpDef modulo(OpDef op) {
  op.dtypes = kNumbers;
  op.grad = modulo_grad;
  op.grad_reads = {.inputs = 0b11, .outputs = 1};
  op = pair_function<kFunction, infer_promoted, modulo_samples>(op);
  op.cpu = modulo_cpu;
  return op;
}

}  // namespace

constinit const OpDef add_op = pair_function<kernels::Binary::add>(
    {.name = "add",
     .formula = "a + b",
     .dtypes = kAnyDType,
     .grad =
         [](const GradCall& call) {
           const Tensor& dy = call.output_grad(0);
           return pair_grads(
               call, [&] { return dy; }, [&] { return dy; });
         },
     .scalar = [](const double* x, const Attrs&) { return x[0] + x[1]; }});

constinit const OpDef sub_op =
    pair_function<kernels::Binary::sub>({.name = "sub",
                                         .formula = "a - b",
                                         .dtypes = kNumbers,
                                         .grad =
                                             [](const GradCall& call) {
                                               const Tensor& dy = call.output_grad(0);
                                               return pair_grads(
                                                   call, [&] { return dy; }, [&] { return -dy; });
                                             },
                                         .compose = [](const ComposeCall& call) -> Tensors {
                                           return {call.input(0) + -call.input(1)};
                                         }});

constinit const OpDef mul_op = pair_function<kernels::Binary::mul>(
    {.name = "mul",
     .formula = "a * b",
     .dtypes = kAnyDType,
     .grad =
         [](const GradCall& call) {
           const Tensor& dy = call.output_grad(0);
           return pair_grads(
               call, [&] { return dy * call.input(1); }, [&] { return dy * call.input(0); });
         },
     .grad_reads = kReadsBoth,
     .scalar = [](const double* x, const Attrs&) { return x[0] * x[1]; }});

constinit const OpDef div_op =
    pair_function<kernels::Binary::div, infer_promoted_float, div_samples>(
        {.name = "div",
         .formula = "a / b",
         .dtypes = kAnyDType,
         .grad =
             [](const GradCall& call) {
               const Tensor &b = call.input(1), &dy = call.output_grad(0);
               return pair_grads(
                   call, [&] { return dy / b; }, [&] { return -dy * call.output(0) / b; });
             },
         .grad_reads = {.inputs = 0b10, .outputs = 1},
         .scalar = [](const double* x, const Attrs&) { return x[0] / x[1]; }});

constinit const OpDef pow_op = pair_function<kernels::Binary::pow, infer_promoted, pow_samples>(
    {.name = "pow",
     .formula = "a^b",
     .dtypes = kNumbers,
     .grad = pow_grad,
     .grad_reads = {.inputs = 0b11, .outputs = 1},
     .scalar = [](const double* x, const Attrs&) { return std::pow(x[0], x[1]); }});

constinit const OpDef maximum_op = pair_function<kernels::Binary::maximum>(
    {.name = "maximum",
     .formula = "max(a, b)",
     .dtypes = kAnyDType,
     .grad =
         [](const GradCall& call) {
           return extremum_grad(call, call.input(0) < call.input(1), call.input(1) < call.input(0));
         },
     .grad_reads = kReadsBoth,
     .scalar = [](const double* x, const Attrs&) { return std::max(x[0], x[1]); }});

constinit const OpDef minimum_op = pair_function<kernels::Binary::minimum>(
    {.name = "minimum",
     .formula = "min(a, b)",
     .dtypes = kAnyDType,
     .grad =
         [](const GradCall& call) {
           return extremum_grad(call, call.input(0) > call.input(1), call.input(1) > call.input(0));
         },
     .grad_reads = kReadsBoth,
     .scalar = [](const double* x, const Attrs&) { return std::min(x[0], x[1]); }});

constinit const OpDef fmod_op = modulo<kernels::Binary::fmod>(
    {.name = "fmod", .formula = "a - b trunc(a / b)", .scalar = [](const double* x, const Attrs&) {
       return std::fmod(x[0], x[1]);
     }});

constinit const OpDef remainder_op = modulo<kernels::Binary::remainder>(
    {.name = "remainder",
     .formula = "a - b floor(a / b)",
     .flops_per_element = 2,
     .scalar = [](const double* x, const Attrs&) {
       const double rest = std::fmod(x[0], x[1]);
       return rest != 0 && std::signbit(rest) != std::signbit(x[1]) ? rest + x[1] : rest;
     }});

constinit const OpDef floor_divide_op = [] {
  OpDef op = pair_function<kernels::Binary::floor_divide, infer_promoted, floor_divide_samples>(
      {.name = "floor_divide",
       .formula = "floor(a / b)",
       .dtypes = kNumbers,
       .flops_per_element = 2,
       .grad = floor_divide_grad,
       .scalar = [](const double* x, const Attrs&) {
         const double rest = std::fmod(x[0], x[1]);
         const bool is_below = rest != 0 && std::signbit(rest) != std::signbit(x[1]);
         return std::round((x[0] - rest) / x[1]) - (is_below ? 1 : 0);
       }});
  op.cpu = modulo_cpu;
  return op;
}();

constinit const OpDef where_op = pair_function<kernels::Binary::where, infer_where, where_samples>(
    {.name = "where",
     .formula = "condition ? a : b",
     .dtypes = kAnyDType,
     .grad = where_grad,
     .grad_reads = {.inputs = 0b1},
     .scalar = [](const double* x, const Attrs&) { return x[0] != 0 ? x[1] : x[2]; }});

Tensor add(const Arg& a, const Arg& b) { return call_elementwise(add_op, a, b); }
Tensor sub(const Arg& a, const Arg& b) { return call_elementwise(sub_op, a, b); }
Tensor mul(const Arg& a, const Arg& b) { return call_elementwise(mul_op, a, b); }
Tensor div(const Arg& a, const Arg& b) { return call_elementwise(div_op, a, b); }
Tensor pow(const Arg& a, const Arg& b) { return call_elementwise(pow_op, a, b); }
Tensor maximum(const Arg& a, const Arg& b) { return call_elementwise(maximum_op, a, b); }
Tensor minimum(const Arg& a, const Arg& b) { return call_elementwise(minimum_op, a, b); }
Tensor fmod(const Arg& a, const Arg& b) { return call_elementwise(fmod_op, a, b); }
Tensor remainder(const Arg& a, const Arg& b) { return call_elementwise(remainder_op, a, b); }
Tensor floor_divide(const Arg& a, const Arg& b) { return call_elementwise(floor_divide_op, a, b); }
Tensor where(const Tensor& condition, const Arg& a, const Arg& b) {
  const Device device = condition.device();
  return call_one(where_op, {condition, a.operand_of(where_op, b.dtype(), device),
                             b.operand_of(where_op, a.dtype(), device)});
}

Tensor reduce_like(const Tensor& grad, const Tensor& operand) {
  Tensor result = grad;
  const int extra = grad.rank() - operand.rank();
  Axes axes;
  for (int axis = 0; axis < grad.rank(); ++axis) {
    if (axis < extra || (operand.shape()[axis - extra] == 1 && grad.shape()[axis] != 1))
      axes.push_back(axis);
  }
  if (!axes.empty()) result = sum(result, axes, KeepDims::yes);
  if (result.shape() != operand.shape()) result = reshape(result, operand.shape());
  return result.dtype() == operand.dtype() ? result : cast(result, operand.dtype());
}

}  // namespace brrr
