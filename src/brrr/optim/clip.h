// Gradients kept from being too large.
#pragma once

#include <vector>

#include "brrr/tensor/tensor.h"

namespace brrr {

// The norm of all gradients as one vector.
Tensor global_norm(const std::vector<Tensor>& grads);
// Scales the gradients so that their common norm is at most `max_norm`; returns the norm before.
Tensor clip_global_norm(std::vector<Tensor>& grads, double max_norm);
// Bounds every element to +-limit.
void clip_values(std::vector<Tensor>& grads, double limit);

}  // namespace brrr
