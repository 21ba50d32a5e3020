#include "brrr/ops/einops/einsum_recipe.h"

#include <array>
#include <string>

#include "brrr/ops/matmul/matmul.h"

namespace brrr::einsum_plan {
namespace {

struct Entry {
  std::string pattern;
  std::array<Shape, 2> shapes;
  std::array<Strides, 2> strides;
  EinsumRecipe recipe;
};

constexpr size_t kEntries = 64;

// One small table a thread: a lookup takes no lock. Two patterns that fall on one place take turns.
struct RecipeTable {
  std::array<Entry, kEntries> entries;
};

Entry& entry_for(std::string_view pattern, std::span<const Tensor> operands) {
  static thread_local RecipeTable table;
  size_t hash = pattern.size() * 0x9e3779b97f4a7c15ULL;
  if (!pattern.empty())
    hash ^= static_cast<size_t>(pattern.front()) * 31 + static_cast<size_t>(pattern.back());
  for (const Tensor& x : operands) {
    for (int64_t size : x.shape()) hash = (hash ^ static_cast<size_t>(size)) * 0x100000001b3ULL;
  }
  return table.entries[(hash >> 32) % kEntries];
}

bool matches(const Entry& entry, std::string_view pattern, std::span<const Tensor> operands) {
  if (entry.pattern != pattern) return false;
  for (size_t i = 0; i < 2; ++i) {
    if (entry.shapes[i] != operands[i].shape() || entry.strides[i] != operands[i].strides())
      return false;
  }
  return true;
}

Layout relative(const Tensor& view, const Tensor& operand) {
  Layout layout = view.layout();
  layout.offset -= operand.offset();
  return layout;
}

Tensor view_for(const EinsumRecipe& recipe, int side, const Tensor& x) {
  if (recipe.as_is[side]) return x;
  Layout layout = recipe.views[side];
  layout.offset += x.offset();
  return make_view(x, layout);
}

}  // namespace

const EinsumRecipe* find_recipe(std::string_view pattern, std::span<const Tensor> operands) {
  if (operands.size() != 2) return nullptr;
  const Entry& entry = entry_for(pattern, operands);
  return matches(entry, pattern, operands) ? &entry.recipe : nullptr;
}

void keep_recipe(std::string_view pattern, std::span<const Tensor> operands,
                 std::span<const Tensor> matrices, const Tensor& product, const Tensor& result) {
  if (operands.size() != 2 || shares_storage(operands[0], operands[1]) ||
      !shares_storage(product, result))
    return;
  const int left = shares_storage(matrices[0], operands[0]) ? 0 : 1;
  const auto l = static_cast<size_t>(left);
  if (!shares_storage(matrices[0], operands[l]) || !shares_storage(matrices[1], operands[1 - l]))
    return;
  Entry& entry = entry_for(pattern, operands);
  entry.pattern = pattern;
  for (size_t i = 0; i < 2; ++i) {
    entry.shapes[i] = operands[i].shape();
    entry.strides[i] = operands[i].strides();
  }
  entry.recipe = {
      .left = left,
      .views = {relative(matrices[0], operands[l]), relative(matrices[1], operands[1 - l])},
      .as_is = {matrices[0].layout() == operands[l].layout(),
                matrices[1].layout() == operands[1 - l].layout()},
      .result = result.layout()};
}

Tensor run_recipe(const EinsumRecipe& recipe, std::span<const Tensor> operands) {
  const auto l = static_cast<size_t>(recipe.left);
  const Tensor product =
      matmul(view_for(recipe, 0, operands[l]), view_for(recipe, 1, operands[1 - l]));
  return product.layout() == recipe.result ? product : make_view(product, recipe.result);
}

}  // namespace brrr::einsum_plan
