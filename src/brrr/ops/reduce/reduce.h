// Reductions over any axes: sum(x), sum(x, 1), sum(x, {0, -1}, KeepDims::yes). No axes given means all of
// them. Low-precision floats accumulate in f32, integers in i64; the order of additions depends on the
// shape alone, never on threads.
#pragma once

#include <concepts>
#include <initializer_list>

#include "brrr/tensor/tensor.h"

namespace brrr {

enum class KeepDims : uint8_t { no, yes };  // yes: reduced axes stay, with size 1

// The axes of a reduction: a number, several in braces, or {} for all of them.
class ReduceAxes {
 public:
  ReduceAxes() = default;
  template <std::integral Axis>
  ReduceAxes(Axis axis) : list_{static_cast<int64_t>(axis)} {}      // NOLINT: an axis is a number
  ReduceAxes(std::initializer_list<int64_t> axes) : list_(axes) {}  // NOLINT
  ReduceAxes(const Axes& axes) : list_(axes) {}                     // NOLINT
  operator const Axes&() const { return list_; }                    // NOLINT

 private:
  Axes list_;
};

// sum of integers and bools is i64.
Tensor sum(const Tensor& x, const ReduceAxes& axes = {}, KeepDims keep = KeepDims::no);
Tensor mean(const Tensor& x, const ReduceAxes& axes = {}, KeepDims keep = KeepDims::no);
Tensor max(const Tensor& x, const ReduceAxes& axes = {},
           KeepDims keep = KeepDims::no);  // NaN wins; ties share the gradient
Tensor min(const Tensor& x, const ReduceAxes& axes = {}, KeepDims keep = KeepDims::no);
// Divides by (count - correction); 1 is Bessel's.
Tensor var(const Tensor& x, const ReduceAxes& axes = {}, KeepDims keep = KeepDims::no,
           int64_t correction = 1);
Tensor logsumexp(const Tensor& x, const ReduceAxes& axes = {}, KeepDims keep = KeepDims::no);
// Position of the largest element along the axes, counted in row-major order among them; the first of
// equals, and NaN is the largest. i64.
Tensor argmax(const Tensor& x, const ReduceAxes& axes = {}, KeepDims keep = KeepDims::no);
// The same for the smallest; NaN is the smallest.
Tensor argmin(const Tensor& x, const ReduceAxes& axes = {}, KeepDims keep = KeepDims::no);
// Whether an element, or every one, is not 0; NaN is not. Of nothing: any is false, all is true.
Tensor any(const Tensor& x, const ReduceAxes& axes = {}, KeepDims keep = KeepDims::no);
Tensor all(const Tensor& x, const ReduceAxes& axes = {}, KeepDims keep = KeepDims::no);
// The product; of integers and bools is i64. The gradient is right where elements are 0: it multiplies the
// others, over a tree, and costs about 3 products an element.
Tensor prod(const Tensor& x, const ReduceAxes& axes = {}, KeepDims keep = KeepDims::no);
// (sum |x|^p)^(1/p), p > 0; p = INFINITY is the largest |x|. The gradient is 0 where the norm is 0.
Tensor norm(const Tensor& x, double p = 2, const ReduceAxes& axes = {},
            KeepDims keep = KeepDims::no);
// The op std: sqrt(var). A function of that name would hide behind the namespace. The gradient is 0
// where all elements are equal.
Tensor stddev(const Tensor& x, const ReduceAxes& axes = {}, KeepDims keep = KeepDims::no,
              int64_t correction = 1);

// y[i] = x[0] + ... + x[i] along an axis; from the end: y[i] = x[i] + ... + x[last]. Integers and bools
// become i64. Floats accumulate in f64, element after element; rows run in parallel.
enum class ScanFrom : uint8_t { start, end };
Tensor cumsum(const Tensor& x, int64_t axis = -1, ScanFrom from = ScanFrom::start);

}  // namespace brrr
