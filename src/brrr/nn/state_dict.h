// Tensors by name, and the way of values back into them: what checkpoints of models and optimizers
// share.
#pragma once

#include <string>
#include <vector>

#include "brrr/tensor/tensor.h"

namespace brrr {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

struct LoadOptions {
  bool allow_missing = false;     // targets without a value keep what they have
  bool allow_unexpected = false;  // values without a target are left alone
};

// Copies every value into the target of its name, converting dtypes. Throws Error, before anything is
// written, that lists all names that are missing, unexpected, given twice or of another shape.
void load_tensors(const std::vector<NamedTensor>& targets, const std::vector<NamedTensor>& values,
                  const LoadOptions& options = {});

}  // namespace brrr
