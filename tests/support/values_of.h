// All elements of named tensors in their order, whichever device holds them.
#pragma once

#include <initializer_list>
#include <vector>

#include "brrr/nn/state_dict.h"
#include "brrr/ops/create/copy.h"

namespace brrr {

inline std::vector<float> values_of(std::initializer_list<std::vector<NamedTensor>> lists) {
  std::vector<float> all;
  for (const std::vector<NamedTensor>& named : lists) {
    for (const NamedTensor& each : named) {
      const std::vector<float> values = to(each.tensor.detach(), Device::cpu()).to_vector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  return all;
}

}  // namespace brrr
