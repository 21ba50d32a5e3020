// Rounding to bf16 by chance. An average with weight 1 / 1000 for the new value moves by less than half
// of a last bit of bf16, and rounding to nearest would keep it where it is for ever. Rounded up with the
// probability that the value is up, it is right on average.
#pragma once

#include "brrr/tensor/tensor.h"

namespace brrr {

// x as bf16. The chance is a function of the step (f64 [], counted by the program itself) and of the
// site, which tells tensors apart: no state, and the same bits at every run.
Tensor round_by_chance(const Tensor& x, const Tensor& step, int64_t site);

}  // namespace brrr
