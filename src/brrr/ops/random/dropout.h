#pragma once

#include "brrr/ops/random/random.h"

namespace brrr {

// x / (1 - p) with probability 1 - p, else 0, so that the mean stays. The mask is a function of the
// key and is not stored: element i is kept where element i of uniform(shape, key) is >= p, and the
// gradient draws the same mask again. p = 0 keeps all elements and p = 1 none.
Tensor dropout(const Tensor& x, double p, const KeyArg& key);

}  // namespace brrr
