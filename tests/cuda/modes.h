// Ways to compute that GPU tests hold programs against each other in, and how far results are apart.
#pragma once

#include <algorithm>
#include <cmath>

#include "brrr/compiler/precision/precision.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/reduce/reduce.h"

namespace brrr {

struct Mode {
  const char* name;
  compiler::Precision policy;
  compiler::MatmulPrecision products;
  double tolerance;
};

// The norm of the difference, in norms of what was expected; wherever both are.
inline double relative_error(const Tensor& got, const Tensor& expected) {
  const Tensor a = cast(to(got, Device::cpu()), DType::f64),
               b = cast(to(expected, Device::cpu()), DType::f64);
  return std::sqrt(sum(square(a - b)).item<double>() /
                   std::max(1e-30, sum(square(b)).item<double>()));
}

}  // namespace brrr
