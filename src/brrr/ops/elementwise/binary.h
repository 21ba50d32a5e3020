// Functions of two or three operands, element by element, with broadcasting. Tensors and numbers mix.
#pragma once

#include "brrr/ops/elementwise/arg.h"

namespace brrr {

Tensor add(const Arg& a, const Arg& b);
Tensor sub(const Arg& a, const Arg& b);
Tensor mul(const Arg& a, const Arg& b);
Tensor div(const Arg& a, const Arg& b);  // true division: integers become f32
Tensor pow(const Arg& a, const Arg& b);
Tensor maximum(const Arg& a, const Arg& b);  // NaN wins
Tensor minimum(const Arg& a, const Arg& b);
// What division leaves: fmod has the sign of a (C, torch.fmod), remainder that of b (Python's %).
// An integer divisor of 0 is an Error, as in floor_divide; on a GPU, and fused with other ops in a compiled
// program, nothing looks at divisors first, and the result is 0. A float divisor of 0 gives NaN.
Tensor fmod(const Arg& a, const Arg& b);
Tensor remainder(const Arg& a, const Arg& b);
// a / b rounded towards minus infinity: Python's //, floor_divide(a, b) * b + remainder(a, b) = a. Integers stay
// integers, and the smallest over -1 wraps. A float over 0 is infinite or NaN.
Tensor floor_divide(const Arg& a, const Arg& b);

Tensor equal(const Arg& a, const Arg& b);
Tensor not_equal(const Arg& a, const Arg& b);
Tensor less(const Arg& a, const Arg& b);
Tensor less_equal(const Arg& a, const Arg& b);
Tensor greater(const Arg& a, const Arg& b);
Tensor greater_equal(const Arg& a, const Arg& b);
// Anything but 0 is true, NaN included.
Tensor logical_and(const Arg& a, const Arg& b);
Tensor logical_or(const Arg& a, const Arg& b);
Tensor logical_xor(const Arg& a, const Arg& b);

// a where the condition holds, b elsewhere.
Tensor where(const Tensor& condition, const Arg& a, const Arg& b);

inline Tensor operator+(const Arg& a, const Arg& b) { return add(a, b); }
inline Tensor operator-(const Arg& a, const Arg& b) { return sub(a, b); }
inline Tensor operator*(const Arg& a, const Arg& b) { return mul(a, b); }
inline Tensor operator/(const Arg& a, const Arg& b) { return div(a, b); }
// Comparisons give bool tensors. Tensors have no == : write equal(a, b), or shares_storage(a, b).
inline Tensor operator<(const Arg& a, const Arg& b) { return less(a, b); }
inline Tensor operator<=(const Arg& a, const Arg& b) { return less_equal(a, b); }
inline Tensor operator>(const Arg& a, const Arg& b) { return greater(a, b); }
inline Tensor operator>=(const Arg& a, const Arg& b) { return greater_equal(a, b); }

// Brings a gradient back to the shape and dtype of the operand it belongs to: sums what was broadcast.
Tensor reduce_like(const Tensor& grad, const Tensor& operand);

}  // namespace brrr
