// Gradients: the reverse walk over the tape, written once.
// `loss.backward()` adds the gradient of every leaf that wants one to its grad(); `grad` returns
// gradients of chosen values and leaves the rest alone.
#pragma once

#include <span>
#include <vector>

#include "brrr/tensor/tensor.h"

namespace brrr {

struct GradOptions {
  Tensor seed;  // gradient of the result itself; ones by default, for one element only
  bool create_graph = false;  // record the walk, so that gradients have gradients
  bool retain_graph = false;  // keep the tape for another walk; create_graph implies it
};

void backward(const Tensor& result, const GradOptions& options = {});

// d result / d input for each input; inputs that the result does not depend on get zeros.
std::vector<Tensor> grad(const Tensor& result, std::span<const Tensor> inputs,
                         const GradOptions& options = {});
std::vector<Tensor> grad(const Tensor& result, const std::vector<Tensor>& inputs,
                         const GradOptions& options = {});

}  // namespace brrr
