// What the models of einops share.
#pragma once

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "brrr/brrr.h"

namespace brrr {

// The same values with the axes lying in storage in a random order.
inline Tensor with_random_strides(const Tensor& x, std::mt19937& random) {
  Axes order, inverse(x.rank(), 0);
  for (int axis = 0; axis < x.rank(); ++axis) order.push_back(axis);
  std::shuffle(order.begin(), order.end(), random);
  for (int i = 0; i < x.rank(); ++i) inverse[static_cast<int>(order[i])] = i;
  return permute(contiguous(permute(x, order)), inverse);
}

// Calls visit(index) for all indices below the sizes.
inline void for_all_indices(const std::vector<int64_t>& sizes,
                            const std::function<void(const std::vector<int64_t>&)>& visit) {
  std::vector<int64_t> index(sizes.size(), 0);
  if (std::ranges::count(sizes, 0) > 0) return;
  while (true) {
    visit(index);
    size_t axis = sizes.size();
    while (axis > 0 && ++index[axis - 1] == sizes[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace brrr
