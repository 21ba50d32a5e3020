// What kernels see: operands with their memory, tiles of elementwise ops, and what may be streamed into and
// out of a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "brrr/base/thread_pool.h"
#include "brrr/graph/attrs.h"
#include "brrr/tensor/tensor.h"

namespace brrr {

struct OpDef;

// Elements that are not in memory: a fused kernel computes an operand when its op reads it, or takes a
// result on when its op has it. Both are asked for elements [begin, begin + count) in logical order, each
// exactly once, by any thread.
class TileSource {
 public:
  virtual void read(int64_t begin, int64_t count, ComputeType type, void* out) const = 0;

 protected:
  ~TileSource() = default;
};
class TileSink {
 public:
  virtual void write(int64_t begin, int64_t count, ComputeType type, const void* values) const = 0;

 protected:
  ~TileSink() = default;
};

// An operand as a kernel sees it.
struct Operand {
  std::byte* base;  // start of the storage; layout.offset counts elements from here
  const Layout* layout;
  DType dtype;
  const TileSource* source = nullptr;  // in place of the memory of an input
  const TileSink* sink = nullptr;      // told of a result; see OpDef::streams

  template <typename T>
  T* data() const {
    return reinterpret_cast<T*>(base) + layout->offset;
  }
  const Shape& shape() const { return layout->shape; }
  int64_t count() const { return numel(layout->shape); }
};

// Where the first element of an operand, or of a tensor, lies.
inline std::byte* first_byte(const Operand& operand) {
  return operand.base + storage_bytes(operand.dtype, operand.layout->offset);
}
inline std::byte* first_byte(const Tensor& x) {
  return x.storage().data() + storage_bytes(x.dtype(), x.offset());
}

// What a kernel sees. Outputs are allocated and contiguous; only those of elementwise ops may have
// strides, when a write goes through a view.
struct KernelCall {
  const OpDef& op;
  std::span<const Operand> inputs;
  std::span<const Operand> outputs;
  const Attrs& attrs;
  std::span<std::byte> workspace;  // as many bytes as `workspace` asked for, 64-byte aligned
  ThreadPool& pool;

  const Operand& input(int i) const { return inputs[static_cast<size_t>(i)]; }
  const Operand& output(int i) const { return outputs[static_cast<size_t>(i)]; }
};

// One contiguous tile of an elementwise op in a compute type: output[i] = f(inputs[0][i], ...).
// Tiles are the unit that fused programs are made of.
inline constexpr int kMaxTileInputs = 4;
inline constexpr int64_t kTileElements = 1024;  // 4 KiB of f32: a few operands fit the L1 cache
struct TileCall {
  const void* inputs[kMaxTileInputs];
  void* output;
  int64_t count;
  const Attrs* attrs;
};
using TileFn = void (*)(const TileCall&);
// Ops of an instruction or two: runs of them go through registers, see kernels/cpu/elementwise/chain_tiles.h.
enum class ChainCode : uint8_t {
  none,
  add,
  sub,
  mul,
  div,
  maximum,
  minimum,
  neg,
  abs,
  square,
  relu,
  sqrt,
  reciprocal
};
struct TileKernels {
  TileFn f32 = nullptr, f64 = nullptr, i64 = nullptr, u64 = nullptr;  // null: not computed in it
  ChainCode chain = ChainCode::none;                                  // of the f32 function
};

// Which operands a kernel takes from a TileSource or gives to a TileSink: those that it reads, or has
// finished, exactly once. `lands`: results are in memory as well when the sink hears of them.
struct Streams {
  uint32_t inputs = 0, outputs = 0;  // bit i: operand i
  bool lands = false;
};

}  // namespace brrr
