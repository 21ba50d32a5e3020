// Functions of one tensor, element by element.
#pragma once

#include <optional>

#include "brrr/tensor/tensor.h"

namespace brrr {

Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor sign(const Tensor& x);
Tensor square(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor round(const Tensor& x);  // halves go to the even neighbour

// clamp(x, {.low = 0}), clamp(x, {.low = -1, .high = 1}): at least one bound. NaN stays NaN; where
// low > high the result is high. Integers take whole bounds.
struct ClampBounds {
  std::optional<double> low = {}, high = {};
};
Tensor clamp(const Tensor& x, const ClampBounds& bounds);

// Questions, answered in bools.
Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);
Tensor logical_not(const Tensor& x);  // x == 0
Tensor to_tf32(const Tensor& x);      // f32 with 10 mantissa bits, the 13 below them dropped

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
Tensor expm1(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor softplus(const Tensor& x);   // ln(1 + e^x), without torch's switch to x above 20
Tensor gelu_tanh(const Tensor& x);  // the approximation of GPT-2
// Floats only.
Tensor leaky_relu(const Tensor& x, double slope = 0.01);  // x, and slope * x below 0

inline Tensor operator-(const Tensor& x) { return neg(x); }

}  // namespace brrr
