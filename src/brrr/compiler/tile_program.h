// A fused elementwise region on the CPU: a list of steps over tiles that fit the L1 cache. Operands come
// in with any strides and dtypes; a value between two steps has the dtype of its node, rounded like it
// would be in memory, so that fusing changes no bit.
#pragma once

#include "brrr/compiler/fuse.h"
#include "brrr/graph/graph.h"
#include "brrr/ops/loop_nest.h"

namespace brrr {

// What a step does with its slots, buffers of one tile in a compute type.
struct TileStep {
  enum class Kind : uint8_t {
    compute,  // output = tile(inputs)
    through   // output = the input as `dtype` holds it: rounded, saturated, converted
  };
  Kind kind;
  TileFn tile = nullptr;
  const Attrs* attrs = nullptr;  // of the node, which outlives the program
  SmallVector<int, kMaxTileInputs> inputs;
  int output = -1;
  ComputeType type;  // of the inputs
  DType dtype = DType::f32;
};

// An operand brought into a slot before the steps, or out of one behind them.
struct TileTransfer {
  int operand;
  int slot;
  ComputeType type;
};

class TileProgram {
 public:
  // The program of these nodes. `inputs` and `outputs` are the region's operands in the order in which
  // a kernel call gives them.
  TileProgram(const Graph& graph, const Region& region, const std::vector<ValueId>& inputs,
              const std::vector<ValueId>& outputs);

  const Shape& shape() const { return shape_; }
  int slots() const { return slots_; }
  const std::vector<TileStep>& steps() const { return steps_; }

 private:
  friend class TileProgramBuilder;
  friend class TileKernel;
  Shape shape_;
  std::vector<TileTransfer> loads_, stores_;
  std::vector<TileStep> steps_;
  std::vector<ComputeType> slot_types_;
  int slots_ = 0;
};

// A program bound to the layouts of its operands: what can be known before it runs. An output may share
// the memory of an input of the same layout.
class TileKernel {
 public:
  TileKernel(const TileProgram& program, std::span<const Operand> inputs,
             std::span<const Operand> outputs);
  // The same operands again; only their addresses may have changed.
  void run(std::span<const Operand> inputs, std::span<const Operand> outputs,
           ThreadPool& pool) const;

 private:
  // How a transfer moves one tile.
  struct Path {
    enum class Kind : uint8_t { direct, constant, gathered } kind;
    LoopNest nest;  // of this operand alone
  };
  using Slots = SmallVector<std::byte*, 64>;

  static Path path_of(const Operand& operand, const Shape& shape, ComputeType type, bool direct);
  void run_piece(std::span<const Operand> inputs, std::span<const Operand> outputs, int64_t begin,
                 int64_t end) const;
  void load(std::span<const Operand> inputs, int64_t begin, int64_t count, const Slots& own,
            Slots& at) const;
  void store(std::span<const Operand> outputs, int64_t begin, int64_t count, const Slots& at) const;

  const TileProgram* program_;
  std::vector<Path> load_paths_, store_paths_;
  int64_t tile_;  // elements, so that all slots fit the L1 cache
};

}  // namespace brrr
