#include "brrr/ops/elementwise/assign.h"

#include "brrr/ops/elementwise/binary.h"

namespace brrr {
namespace {

// floats > integers > bool: a write may go up this order and never down.
int category(DType dtype) { return is_float(dtype) ? 2 : is_integer(dtype) ? 1 : 0; }

const Tensor& assign(const Tensor& x, const Tensor& result, std::string_view sign) {
  check(result.shape() == x.shape(), "x ", sign, " y: the result has shape ", result.shape(),
        " and x ", x.shape(), "; x keeps its shape, so y must broadcast to it");
  check(category(result.dtype()) <= category(x.dtype()), "x ", sign, " y: the result is ",
        result.dtype(), " and x ", x.dtype(), ", which would cut it; cast x to ", result.dtype(),
        " first, or the result to ", x.dtype());
  x.copy_from(result);
  return x;
}

}  // namespace

const Tensor& operator+=(const Tensor& x, const Arg& y) { return assign(x, x + y, "+="); }
const Tensor& operator-=(const Tensor& x, const Arg& y) { return assign(x, x - y, "-="); }
const Tensor& operator*=(const Tensor& x, const Arg& y) { return assign(x, x * y, "*="); }
const Tensor& operator/=(const Tensor& x, const Arg& y) { return assign(x, x / y, "/="); }

}  // namespace brrr
