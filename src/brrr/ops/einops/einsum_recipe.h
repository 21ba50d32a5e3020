// What einsum did the last time it met this pattern with operands that lay like these. Most calls are one
// matmul between views: the next one then makes the two views and multiplies, without asking again which
// label folds into what.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "brrr/tensor/tensor.h"

namespace brrr::einsum_plan {

struct EinsumRecipe {
  int left = 0;        // the operand on the left of the product; the other is on the right
  Layout views[2];     // of the left and the right operand, relative to their first elements
  bool as_is[2] = {};  // the view is the operand itself
  Layout result;       // of the product
};

// The recipe for these operands on this thread, or nullptr.
const EinsumRecipe* find_recipe(std::string_view pattern, std::span<const Tensor> operands);
// Keeps what was done: `matrices` were multiplied and gave `product`, shown as `result`. Does nothing
// where one of them is not a view.
void keep_recipe(std::string_view pattern, std::span<const Tensor> operands,
                 std::span<const Tensor> matrices, const Tensor& product, const Tensor& result);

Tensor run_recipe(const EinsumRecipe& recipe, std::span<const Tensor> operands);

}  // namespace brrr::einsum_plan
