// What the random ops mean, element by element and with nothing shared between elements: what the sweep
// holds their kernels against.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

Tensors uniform_reference(const ComposeCall& call);
Tensors normal_reference(const ComposeCall& call);
Tensors truncated_normal_reference(const ComposeCall& call);
Tensors randint_reference(const ComposeCall& call);
Tensors bernoulli_reference(const ComposeCall& call);
Tensors permutation_reference(const ComposeCall& call);

}  // namespace brrr::kernels
