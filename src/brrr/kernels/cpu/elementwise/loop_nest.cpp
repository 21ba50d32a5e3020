#include "brrr/kernels/cpu/elementwise/loop_nest.h"

namespace brrr::kernels {
namespace {

// Stride of `layout` along axis `axis` of the broadcast shape of rank `rank`; 0 where it broadcasts.
int64_t broadcast_stride(const Layout& layout, int axis, int rank) {
  const int own = axis - (rank - layout.rank());
  return own < 0 || layout.shape[own] == 1 ? 0 : layout.strides[own];
}

bool can_merge(const LoopNest& nest, const std::array<int64_t, kMaxNestOperands>& inner,
               int64_t inner_size) {
  for (int o = 0; o < nest.operands; ++o) {
    const int64_t outer = nest.strides[static_cast<size_t>(o)][static_cast<size_t>(nest.rank - 1)];
    if (outer != inner[static_cast<size_t>(o)] * inner_size) return false;
  }
  return true;
}

}  // namespace

LoopNest make_nest(const Shape& shape, std::span<const Layout* const> operands) {
  LoopNest nest;
  nest.operands = static_cast<int>(operands.size());
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    std::array<int64_t, kMaxNestOperands> strides{};
    for (size_t o = 0; o < operands.size(); ++o) {
      strides[o] = broadcast_stride(*operands[o], axis, shape.size());
    }
    const bool merge = nest.rank > 0 && can_merge(nest, strides, shape[axis]);
    const auto slot = static_cast<size_t>(merge ? nest.rank - 1 : nest.rank++);
    nest.sizes[slot] = merge ? nest.sizes[slot] * shape[axis] : shape[axis];
    for (size_t o = 0; o < operands.size(); ++o) nest.strides[o][slot] = strides[o];
  }
  return nest;
}

bool LoopNest::is_flat(int o) const {
  int64_t expected = 1;
  for (int axis = rank - 1; axis >= 0; --axis) {
    if (strides[static_cast<size_t>(o)][static_cast<size_t>(axis)] != expected) return false;
    expected *= sizes[static_cast<size_t>(axis)];
  }
  return true;
}

bool LoopNest::is_constant(int o) const {
  const auto& own = strides[static_cast<size_t>(o)];
  return std::all_of(own.begin(), own.begin() + rank, [](int64_t stride) { return stride == 0; });
}

}  // namespace brrr::kernels
