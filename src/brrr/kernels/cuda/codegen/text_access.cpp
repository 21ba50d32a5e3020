#include "brrr/kernels/cuda/codegen/text_access.h"

#include <fmt/format.h>

#include <algorithm>

namespace brrr::kernels {
namespace {

// Elements further in than the axis that an operand is placed along.
int64_t below_of(const TextOperand& operand) {
  int64_t below = 1;
  for (int axis = operand.placed.axis + 1; axis < operand.layout.rank(); ++axis)
    below *= operand.layout.shape[axis];
  return below;
}

}  // namespace

LoopNest nest_of(const TextOperand& operand, const Shape& shape) {
  const Layout* layout = &operand.layout;
  return make_nest(shape, {&layout, 1});
}

bool can_pack(const TextOperand& operand, const LoopNest& nest, int pack) {
  const int64_t bytes = bit_size(operand.dtype) / 8;
  const int64_t access = std::min<int64_t>(kAccessBytes, pack * bytes);
  if (operand.alignment % access != 0) return false;
  if (nest.is_flat(0)) return true;
  const int last = nest.rank - 1;
  const auto& strides = nest.strides[0];
  if (strides[static_cast<size_t>(last)] != 1 || nest.inner_size() % pack != 0) return false;
  for (int axis = 0; axis < last; ++axis) {
    if (strides[static_cast<size_t>(axis)] * bytes % access != 0) return false;
  }
  return true;
}

bool is_placed_by(const TextOperand& operand, int pack) {
  if (!operand.placed.is_used()) return true;
  const auto& [axis, start, stop] = operand.placed;
  const int64_t below = below_of(operand), size = operand.layout.shape[axis];
  const int64_t bytes = bit_size(operand.dtype) / 8;
  const int64_t access = std::min<int64_t>(kAccessBytes, pack * bytes);
  return start * below % pack == 0 && stop * below % pack == 0 && size * below % pack == 0 &&
         start * operand.layout.strides[axis] * bytes % access == 0;
}

std::string inside_text(const TextOperand& operand, const std::string& index) {
  const auto& [axis, start, stop] = operand.placed;
  const int64_t below = below_of(operand), size = operand.layout.shape[axis];
  const std::string at = fmt::format("{} / {} % {}", index, below, size);
  const std::string ends = fmt::format("{} < {}", at, stop);
  return start == 0 ? ends : fmt::format("{} >= {} && {}", at, start, ends);
}

Access access_of(const TextOperand& operand, const Shape& shape, int pack) {
  Access access{.kind = Access::Kind::single, .nest = nest_of(operand, shape)};
  if (operand.placed.is_used()) {
    const bool packs = is_placed_by(operand, pack) && !access.nest.is_constant(0) &&
                       can_pack(operand, access.nest, pack);
    access.kind = packs ? Access::Kind::packed : Access::Kind::single;
  } else if (access.nest.is_constant(0)) {
    access.kind = Access::Kind::constant;
  } else if (can_pack(operand, access.nest, pack)) {
    access.kind = Access::Kind::packed;
  } else if (access.nest.strides[0][static_cast<size_t>(access.nest.rank - 1)] == 0 &&
             access.nest.inner_size() % pack == 0) {
    access.kind = Access::Kind::repeated;
  }
  return access;
}

std::string position_text(const LoopNest& nest, const std::string& index) {
  if (nest.is_flat(0)) return index;
  std::string text;
  int64_t below = 1;  // elements of the axes further in
  for (int axis = nest.rank - 1; axis >= 0; --axis) {
    const int64_t size = nest.sizes[static_cast<size_t>(axis)],
                  stride = nest.strides[0][static_cast<size_t>(axis)];
    std::string part = below == 1 ? index : fmt::format("{} / {}", index, below);
    if (axis > 0) part = fmt::format("{} % {}", part, size);
    if (stride != 0) {
      const bool is_plain = stride == 1;
      text += fmt::format("{}{}{}", text.empty() ? "" : " + ", is_plain ? part : "(" + part + ")",
                          is_plain ? "" : fmt::format(" * {}", stride));
    }
    below *= size;
  }
  return text.empty() ? "0" : text;
}

}  // namespace brrr::kernels
