// A tile program at work: threads over pieces, tiles through the steps.
#pragma once

#include "brrr/compiler/tiles/tile_program.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"

namespace brrr::runtime {

// A program bound to the layouts of its operands: what can be known before it runs. An output may share
// the memory of an input of the same layout.
class TileKernel {
 public:
  // `landing`: the output that lies where the given values are; -1 for none.
  TileKernel(const compiler::TileProgram& program, std::span<const Operand> inputs,
             std::span<const Operand> outputs, int landing = -1);
  // The same operands again; only their addresses may have changed.
  void run(std::span<const Operand> inputs, std::span<const Operand> outputs,
           ThreadPool& pool) const;
  // The same in pieces that may run at once.
  int64_t pieces() const;
  void run_piece(std::span<const Operand> inputs, std::span<const Operand> outputs,
                 int64_t piece) const;

  // Elements [begin, end) on the calling thread. `given` and `captured` are at element `begin`, in the
  // compute types of their values.
  struct Range {
    int64_t begin, end;
    const void* given = nullptr;
    void* captured = nullptr;
  };
  void run_range(std::span<const Operand> inputs, std::span<const Operand> outputs,
                 const Range& range) const;
  // In which `given` comes and `captured` goes; f32 for a program without.
  ComputeType given_type() const { return type_of(program_->given_); }
  ComputeType captured_type() const { return type_of(program_->captured_); }

 private:
  // How a transfer moves one tile.
  struct Path {
    enum class Kind : uint8_t { direct, constant, gathered } kind;
    kernels::LoopNest nest;  // of this operand alone
    int64_t element_bytes;   // of a direct one
    std::byte* address(const Operand& operand, int64_t element) const {
      return operand.base + (operand.layout->offset + element) * element_bytes;
    }
  };
  using Slots = SmallVector<std::byte*, 64>;

  static Path path_of(const Operand& operand, const Shape& shape, ComputeType type, bool direct);
  static ComputeType type_of(const std::optional<compiler::TileTransfer>& end) {
    return end ? end->type : ComputeType::f32;
  }
  bool can_write_directly(const compiler::TileTransfer& store, int slot) const;
  void place_slots();
  void run_steps(const Slots& at, int64_t count) const;
  void fill_constants(std::span<const Operand> inputs, int64_t count, const Slots& own) const;
  void load(std::span<const Operand> inputs, int64_t begin, int64_t count, const Slots& own,
            Slots& at) const;
  void store(std::span<const Operand> outputs, int64_t begin, int64_t count, const Slots& at) const;

  const compiler::TileProgram* program_;
  std::vector<Path> load_paths_, store_paths_;
  std::vector<uint64_t> constants_;  // by step: which inputs of a chain are one number
  std::vector<int64_t> offsets_;     // by slot: of its buffer; -1 where it needs none
  std::vector<bool> is_spread_;      // by slot: a constant that somebody reads as a whole tile
  int64_t tile_;                     // elements, so that all slots fit the L1 cache
};

}  // namespace brrr::runtime
