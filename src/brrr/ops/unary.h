// Functions of one tensor, element by element.
#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor sign(const Tensor& x);
Tensor square(const Tensor& x);
Tensor relu(const Tensor& x);
// Integers become f32 in these.
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor gelu(const Tensor& x);  // exact: x * Phi(x)
Tensor silu(const Tensor& x);

inline Tensor operator-(const Tensor& x) { return neg(x); }

}  // namespace brrr
