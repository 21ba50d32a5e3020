// Axes by name instead of by number. A pattern says what goes in and what comes out:
//   einsum("batch seq1 hidden, batch seq2 hidden -> batch seq1 seq2", {x, y})
//   rearrange(x, "... (heads d) -> ... heads d", {{"heads", 2}})
//   reduce(x, "... hidden -> ...", Reduce::mean)
//   repeat(x, "h w -> h w c", {{"c", 3}})
// A name is an identifier; `...` is any number of axes; (a b) is one axis made of two, b running
// faster; 1 and () are axes of size 1. Sizes that do not follow from the tensor are given by name.
// All of them become views, reshapes, reductions and products, and so have gradients.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "brrr/tensor/tensor.h"

namespace brrr {

struct AxisSize {
  std::string_view name;
  int64_t size = 0;
};

// Permutes, splits and merges axes: a view where the strides allow it, else one copy.
Tensor rearrange(const Tensor& x, std::string_view pattern,
                 const std::vector<AxisSize>& sizes = {});

enum class Reduce : uint8_t { sum, mean, max, min, prod };

// Takes away the axes that are not on the right. "(h 2) (w 2) -> h w" pools squares of 2 x 2.
Tensor reduce(const Tensor& x, std::string_view pattern, Reduce how,
              const std::vector<AxisSize>& sizes = {});

// Makes the axes that are on the right only: a view, unless they are merged with others.
Tensor repeat(const Tensor& x, std::string_view pattern, const std::vector<AxisSize>& sizes = {});

// Sums the product of the operands over all names that are not in the output. A name twice in one
// operand is its diagonal ("i i ->" is the trace); `...` broadcasts, aligned at the right. Operands
// meet two at a time, in the order with the fewest FLOPs (exact up to 8 operands, greedy beyond),
// each pair in one matmul. The result may be a view with permuted strides.
Tensor einsum(std::string_view pattern, std::span<const Tensor> operands);
inline Tensor einsum(std::string_view pattern, std::initializer_list<Tensor> operands) {
  return einsum(pattern, std::span<const Tensor>(operands.begin(), operands.size()));
}

}  // namespace brrr
