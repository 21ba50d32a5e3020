// A fused elementwise region on the CPU: a list of steps over tiles that fit the L1 cache. Operands come
// in with any strides and dtypes; a value between two steps has the dtype of its node, rounded like it
// would be in memory, so that fusing changes no bit.
#pragma once

#include <optional>

#include "brrr/compiler/fuse/fuse.h"
#include "brrr/compiler/graph_names.h"
#include "brrr/kernels/cpu/elementwise/chain_tiles.h"

namespace brrr::runtime {
class TileKernel;  // runtime/cpu/tile_kernel.h
}

namespace brrr::compiler {

// What a step does with its slots, buffers of one tile in a compute type.
struct TileStep {
  enum class Kind : uint8_t {
    compute,  // output = tile(inputs)
    chain,    // output = the ops of `chain` one after another, from inputs[0] on
    through   // output = the input as `dtype` holds it: rounded, saturated, converted
  };
  Kind kind;
  TileFn tile = nullptr;
  const Attrs* attrs = nullptr;  // of the node, which outlives the program
  SmallVector<int, kMaxTileInputs> inputs;
  int output = -1;
  ComputeType type;  // of the inputs
  DType dtype = DType::f32;
  ChainCode code = ChainCode::none;  // what `tile` is in a chain
  std::vector<kernels::ChainOp> chain;
  const OpDef* op = nullptr;  // of a compute step
};

// Joins steps that hand a value on to nobody but the next into chains. `is_kept`: by slot, its value is
// needed behind the steps. Every slot is written by one step.
std::vector<TileStep> form_chains(const std::vector<TileStep>& steps,
                                  const std::vector<bool>& is_kept);

// An operand brought into a slot before the steps, or out of one behind them.
struct TileTransfer {
  int operand;
  int slot;
  ComputeType type;
};

// A number that a program has in its text and not in memory.
struct TileLiteral {
  int slot;
  ComputeType type;
  double number = 0;    // in f32 and f64
  int64_t integer = 0;  // in i64; the bits of it in u64
};

// The program before slots are shared and steps are joined: every slot is written once. What a generated
// kernel is made from.
struct TileScript {
  std::vector<TileTransfer> loads, stores;
  std::optional<TileTransfer> given, captured;
  std::vector<TileLiteral> literals;
  std::vector<TileStep> steps;
};

// Which values of a graph a program goes between. `inputs` and `outputs` are in memory, in the order in
// which a kernel call gives them.
struct TileProgramEnds {
  std::vector<ValueId> inputs, outputs;
  ValueId given;     // comes from the kernel that the program is fused behind; or none
  ValueId captured;  // goes to the kernel that the program is fused before; or none
};

class TileProgram {
 public:
  TileProgram(const Graph& graph, std::span<const NodeId> nodes, const TileProgramEnds& ends);

  const Shape& shape() const { return shape_; }
  int slots() const { return slots_; }
  const std::vector<TileStep>& steps() const { return steps_; }
  const TileScript& script() const { return script_; }

 private:
  friend class TileProgramBuilder;
  friend class runtime::TileKernel;
  Shape shape_;
  std::vector<TileTransfer> loads_, stores_;
  std::optional<TileTransfer> given_, captured_;  // without an operand
  std::vector<TileStep> steps_;
  std::vector<ComputeType> slot_types_;
  int slots_ = 0;
  TileScript script_;
};

// The number that a value is everywhere, known when a program is made: a host number, a filled tensor or a
// view of one. nullptr where it is none.
const Node* constant_behind(const Graph& graph, ValueId id);

}  // namespace brrr::compiler
