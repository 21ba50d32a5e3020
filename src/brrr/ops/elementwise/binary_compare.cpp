// Comparisons and the logical functions: answers in bools, no gradients.
#include <cmath>

#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/binary_function.h"
#include "brrr/ops/op_list.h"

namespace brrr {
namespace {

std::vector<Sample> logical_samples() {
  std::vector<Sample> samples = binary_samples(-2, 2);
  for (Sample& sample : samples) {
    for (Tensor& input : sample.inputs) {
      double* values = input.data<double>();
      for (int64_t i = 0; i < input.numel(); ++i)
        values[i] = std::fabs(values[i]) < 1 ? 0 : values[i];
    }
  }
  return samples;
}

template <kernels::Binary kFunction>
constexpr OpDef comparison(OpDef op) {
  op.dtypes = kAnyDType;
  return pair_function<kFunction, infer_comparison>(op);
}

template <kernels::Binary kFunction>
constexpr OpDef logical(OpDef op) {
  op.dtypes = kAnyDType;
  return pair_function<kFunction, infer_comparison, logical_samples>(op);
}

}  // namespace

constinit const OpDef logical_and_op = logical<kernels::Binary::logical_and>(
    {.name = "logical_and", .formula = "a and b", .scalar = [](const double* x, const Attrs&) {
       return x[0] != 0 && x[1] != 0 ? 1.0 : 0.0;
     }});

constinit const OpDef logical_or_op = logical<kernels::Binary::logical_or>(
    {.name = "logical_or", .formula = "a or b", .scalar = [](const double* x, const Attrs&) {
       return x[0] != 0 || x[1] != 0 ? 1.0 : 0.0;
     }});

constinit const OpDef logical_xor_op =
    logical<kernels::Binary::logical_xor>({.name = "logical_xor",
                                           .formula = "a or b, not both",
                                           .scalar = [](const double* x, const Attrs&) {
                                             return (x[0] != 0) != (x[1] != 0) ? 1.0 : 0.0;
                                           }});

constinit const OpDef equal_op = comparison<kernels::Binary::equal>(
    {.name = "equal", .formula = "a == b", .scalar = [](const double* x, const Attrs&) {
       return x[0] == x[1] ? 1.0 : 0.0;
     }});

constinit const OpDef not_equal_op = comparison<kernels::Binary::not_equal>(
    {.name = "not_equal", .formula = "a != b", .scalar = [](const double* x, const Attrs&) {
       return x[0] != x[1] ? 1.0 : 0.0;
     }});

constinit const OpDef less_op = comparison<kernels::Binary::less>(
    {.name = "less", .formula = "a < b", .scalar = [](const double* x, const Attrs&) {
       return x[0] < x[1] ? 1.0 : 0.0;
     }});

constinit const OpDef less_equal_op = comparison<kernels::Binary::less_equal>(
    {.name = "less_equal", .formula = "a <= b", .scalar = [](const double* x, const Attrs&) {
       return x[0] <= x[1] ? 1.0 : 0.0;
     }});

constinit const OpDef greater_op = comparison<kernels::Binary::greater>(
    {.name = "greater", .formula = "a > b", .scalar = [](const double* x, const Attrs&) {
       return x[0] > x[1] ? 1.0 : 0.0;
     }});

constinit const OpDef greater_equal_op = comparison<kernels::Binary::greater_equal>(
    {.name = "greater_equal", .formula = "a >= b", .scalar = [](const double* x, const Attrs&) {
       return x[0] >= x[1] ? 1.0 : 0.0;
     }});

Tensor equal(const Arg& a, const Arg& b) { return call_elementwise(equal_op, a, b); }
Tensor not_equal(const Arg& a, const Arg& b) { return call_elementwise(not_equal_op, a, b); }
Tensor less(const Arg& a, const Arg& b) { return call_elementwise(less_op, a, b); }
Tensor less_equal(const Arg& a, const Arg& b) { return call_elementwise(less_equal_op, a, b); }
Tensor greater(const Arg& a, const Arg& b) { return call_elementwise(greater_op, a, b); }
Tensor greater_equal(const Arg& a, const Arg& b) {
  return call_elementwise(greater_equal_op, a, b);
}
Tensor logical_and(const Arg& a, const Arg& b) { return call_elementwise(logical_and_op, a, b); }
Tensor logical_or(const Arg& a, const Arg& b) { return call_elementwise(logical_or_op, a, b); }
Tensor logical_xor(const Arg& a, const Arg& b) { return call_elementwise(logical_xor_op, a, b); }

}  // namespace brrr
