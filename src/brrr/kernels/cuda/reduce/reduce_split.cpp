#include "brrr/kernels/cuda/reduce/reduce_split.h"

#include <algorithm>

#include "brrr/kernels/calls/kernel_layouts.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"
#include "brrr/kernels/cuda/reduce/reduce_cuda.h"

namespace brrr::kernels {
namespace reduction {
namespace {

constexpr int64_t kFewOutputs = 4096;  // fewer cannot fill a GPU with a block each
constexpr int64_t kRowSplit = 8192;    // elements of a part of a row
constexpr int64_t kColumnSplit = 128;  // rows of a part of a column
constexpr int64_t kColumnThreads = 1 << 17;
constexpr int64_t kMaxSplits = 4096;
constexpr int64_t kStripBlocksPerSm = 4;  // all at once
constexpr int64_t kStripSplit = 64;       // rows that a block of strips has at least
constexpr int64_t kChunkBytes = 16;

LoopNest nest_of(const Layout& layout) {
  const Layout* operand = &layout;
  return make_nest(layout.shape, {&operand, 1});
}

int64_t inner_stride(const LoopNest& nest) {
  return nest.rank == 0 ? INT64_MAX : nest.strides[0][static_cast<size_t>(nest.rank - 1)];
}

// Neighbouring columns in rows of whole chunks, of a dtype that strips are written for. By shape alone, not by
// the address, since workspaces are asked for before there is one.
bool has_strips(DType dtype, int64_t outputs, const LoopNest& kept, const LoopNest& reduced) {
  const int64_t bytes = bit_size(dtype) / 8;
  return (dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16) && kept.rank == 1 &&
         kept.strides[0][0] == 1 && reduced.rank == 1 && outputs * bytes % kChunkBytes == 0 &&
         reduced.strides[0][0] * bytes % kChunkBytes == 0;
}

}  // namespace

Cut cut_of(const CudaCall& call) {
  const Operand& x = call.input(0);
  const Axes& axes = call.attrs.list("axes");
  const Layout kept_layout = pick_axes(*x.layout, axes, false),
               reduced_layout = pick_axes(*x.layout, axes, true);
  const LoopNest kept = nest_of(kept_layout), reduced = nest_of(reduced_layout);
  Cut cut{.outputs = numel(kept_layout.shape),
          .length = numel(reduced_layout.shape),
          .splits = 1,
          .split_length = 0,
          .by_columns = false,
          .by_strips = false,
          .strip_groups = 0};
  cut.by_columns = cut.outputs > 1 && cut.length > 1 && inner_stride(kept) < inner_stride(reduced);
  // Short rows of many outputs: a thread each, as if they were columns.
  if (cut.length <= 16 && cut.outputs > kFewOutputs) cut.by_columns = true;
  const int64_t part = cut.by_columns ? kColumnSplit : kRowSplit;
  const int64_t wanted = cut.by_columns ? kColumnThreads / std::max<int64_t>(1, cut.outputs)
                         : cut.outputs < kFewOutputs ? kMaxSplits
                                                     : 1;
  cut.splits = std::clamp<int64_t>(std::min(wanted, (cut.length + part - 1) / part), 1, kMaxSplits);
  cut.strip_groups = (cut.outputs * bit_size(x.dtype) / 8 / kChunkBytes + 31) / 32;
  if (cut.by_columns && has_strips(x.dtype, cut.outputs, kept, reduced)) {
    cut.by_strips = true;
    const int64_t blocks = kStripBlocksPerSm * call.chip.sm_count;
    cut.splits = std::clamp<int64_t>(std::min(blocks / cut.strip_groups, cut.length / kStripSplit),
                                     1, kMaxSplits);
  }
  cut.split_length = (cut.length + cut.splits - 1) / cut.splits;
  cut.splits = std::max<int64_t>(1, (cut.length + cut.split_length - 1) /
                                        std::max<int64_t>(cut.split_length, 1));  // none is empty
  return cut;
}

}  // namespace reduction

int64_t reduce_cuda_workspace(const CudaCall& call) {
  return reduction::cut_of(call).workspace_bytes();
}

}  // namespace brrr::kernels
