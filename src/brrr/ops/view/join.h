// Putting tensors together, and taking them apart again.
#pragma once

#include <vector>

#include "brrr/tensor/tensor.h"

namespace brrr {

// The parts one after another along `axis`; every other size must be the same. dtypes promote.
Tensor concat(const std::vector<Tensor>& parts, int64_t axis = 0);
// The parts, all of one shape, side by side along a new axis. dtypes promote.
Tensor stack(const std::vector<Tensor>& parts, int64_t axis = 0);
// The way back from stack: one view for every place along `axis`, which they do not have. Gradients of
// all parts are put together once, where selecting each would add as many tensors of the size of x.
std::vector<Tensor> unstack(const Tensor& x, int64_t axis = 0);

}  // namespace brrr
