// What einsum works out before it computes: which names stand for which axes, and in which order the
// operands meet. Depends on the pattern and the shapes alone, so it is done once for each of them.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "brrr/tensor/tensor.h"

namespace brrr::einsum_plan {

using LabelSet = uint64_t;
inline constexpr int kMostLabels = 64;
inline constexpr int kDropped =
    -1;  // an axis of size 1: it multiplies nothing and is put back at the end

inline LabelSet bit(int label) { return LabelSet{1} << label; }
inline int count(LabelSet set) { return std::popcount(set); }

using Labels = InlineVector<int, kMaxRank>;

struct Meeting {
  int a, b;  // numbers of operands; the result takes the place of a
};

// All that follows from the pattern and the shapes.
struct EinsumPlan {
  std::vector<int64_t> sizes;    // by label
  std::vector<Labels> operands;  // label of every axis, or kDropped
  Labels output;                 // without labels of size 1
  Shape result;                  // with them
  std::vector<Meeting> order;

  double elements(LabelSet set) const {
    double product = 1;
    for (; set != 0; set &= set - 1)
      product *= static_cast<double>(sizes[static_cast<size_t>(std::countr_zero(set))]);
    return product;
  }
};

inline LabelSet set_of(const Labels& labels) {
  LabelSet set = 0;
  for (int label : labels) set |= label == kDropped ? 0 : bit(label);
  return set;
}

// The plan for these shapes, made at first use. Throws Error that points at what does not fit.
std::shared_ptr<const EinsumPlan> find_plan(std::string_view pattern,
                                            std::span<const Tensor> operands);

}  // namespace brrr::einsum_plan
