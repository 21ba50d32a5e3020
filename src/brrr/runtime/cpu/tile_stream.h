// A tile program as a part of another kernel: it computes what that kernel reads, or goes on with what it
// has computed, while the elements are in the L1 cache; or it is one of several that run side by side.
#pragma once

#include "brrr/runtime/cpu/tile_kernel.h"

namespace brrr::runtime {

class TileStream final : public TileSource, public TileSink {
 public:
  // Operands are those of the program's memory; they are looked at again in every call.
  TileStream(const compiler::TileProgram& program, std::span<const Operand> inputs,
             std::span<const Operand> outputs, int landing)
      : tiles_(program, inputs, outputs, landing), inputs_(inputs), outputs_(outputs) {}

  void read(int64_t begin, int64_t count, ComputeType type, void* out) const override;
  void write(int64_t begin, int64_t count, ComputeType type, const void* values) const override;
  int64_t pieces() const { return tiles_.pieces(); }
  void run_piece(int64_t piece) const { tiles_.run_piece(inputs_, outputs_, piece); }

 private:
  TileKernel tiles_;
  std::span<const Operand> inputs_, outputs_;
};

}  // namespace brrr::runtime
