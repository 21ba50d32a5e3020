// What a product on a GPU is made from: matrices with their batch axes, and the scratch that copies of them take.
#pragma once

#include <cstddef>
#include <span>

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

// Without memory, in a plan, addresses stay null.
inline std::byte* byte_at(std::byte* base, int64_t offset) {
  return base ? base + offset : nullptr;
}

inline int64_t whole_lines(int64_t bytes) { return (bytes + 255) / 256 * 256; }
inline bool is_f8(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8e5m2; }

// A matrix operand with its batch axes, perhaps in scratch and in another dtype.
struct Factor {
  Operand operand;
  Layout layout;
  Layout original, written;  // where `copied`: how the elements lie that are copied, and the copy
  bool copied = false;
  Factor(const Operand& x, const Layout& given) : operand(x), layout(given) {}
  Operand source(const Operand& given) const { return {given.base, &original, given.dtype}; }
  Operand target() const { return {operand.base, &written, operand.dtype}; }
};

// An operand of the epilogue brought into order, or into the dtype that the library wants.
struct CopiedOperand {
  Operand from;
  Layout layout;
  std::byte* base;
  DType dtype;
};

// The memory of the workspace, handed out from its start. Without memory it only counts.
class ProductScratch {
 public:
  explicit ProductScratch(std::span<std::byte> memory) : memory_(memory) {}
  std::byte* take(int64_t bytes) {
    std::byte* const start = memory_.data() ? memory_.data() + used_ : nullptr;
    used_ += whole_lines(bytes);
    return start;
  }
  std::span<std::byte> rest() const { return memory_.subspan(static_cast<size_t>(used_)); }
  int64_t used() const { return used_; }

 private:
  std::span<std::byte> memory_;
  int64_t used_ = 0;
};

inline constexpr int64_t kAddressAlignment = 16;  // what epilogues want of addresses and rows

inline bool is_aligned(const Layout& layout, DType dtype) {
  const int rank = layout.rank();
  const int64_t leading =
      layout.strides[rank - 1] == 1 ? layout.strides[rank - 2] : layout.strides[rank - 1];
  return storage_bytes(dtype, layout.offset) % kAddressAlignment == 0 &&
         storage_bytes(dtype, leading) % kAddressAlignment == 0;
}

inline bool is_library_matrix(const Layout& layout) {
  const int rank = layout.rank();
  const int64_t rows = layout.shape[rank - 2], cols = layout.shape[rank - 1],
                row_stride = layout.strides[rank - 2], col_stride = layout.strides[rank - 1];
  return (col_stride == 1 && row_stride >= cols) || (row_stride == 1 && col_stride >= rows);
}

// Strides of axes of one element mean nothing; these are what the library likes.
inline Layout with_useful_strides(Layout layout) {
  const int rank = layout.rank();
  const int64_t rows = layout.shape[rank - 2], cols = layout.shape[rank - 1];
  int64_t &row_stride = layout.strides[rank - 2], &col_stride = layout.strides[rank - 1];
  if (cols == 1) col_stride = rows > 1 && row_stride == 1 ? rows : 1;
  if (rows == 1) row_stride = col_stride == 1 ? cols : 1;
  return layout;
}

inline Layout batch_layout(const Layout& layout) {
  Layout batch = layout;
  batch.shape.resize(layout.rank() - 2);
  batch.strides.resize(layout.rank() - 2);
  return batch;
}

}  // namespace brrr::kernels
