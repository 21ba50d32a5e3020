// Reductions over any axes. No axes given means all of them. Low-precision floats accumulate in f32,
// integers in i64; the order of additions depends on the shape alone, never on threads.
#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

enum class KeepDims : uint8_t { no, yes };  // yes: reduced axes stay, with size 1

// sum of integers and bools is i64.
Tensor sum(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
Tensor mean(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
Tensor max(const Tensor& x, const Axes& axes = {},
           KeepDims keep = KeepDims::no);  // NaN wins; ties share the gradient
Tensor min(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
// Divides by (count - correction); 1 is Bessel's.
Tensor var(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no,
           int64_t correction = 1);
Tensor logsumexp(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
// Position of the largest element along the axes, counted in row-major order among them; the first of
// equals, and NaN is the largest. i64.
Tensor argmax(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
Tensor argmax(const Tensor& x, int64_t axis, KeepDims keep = KeepDims::no);

}  // namespace brrr
