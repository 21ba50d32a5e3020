// A fused elementwise region on the CPU: a list of steps over tiles that fit the L1 cache. Operands come
// in with any strides and dtypes; a value between two steps has the dtype of its node, rounded like it
// would be in memory, so that fusing changes no bit.
#pragma once

#include <optional>

#include "brrr/compiler/fuse/fuse.h"
#include "brrr/graph/graph.h"
#include "brrr/kernels/cpu/elementwise/chain_tiles.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"

namespace brrr {

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
  std::vector<ChainOp> chain;
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
  friend class TileKernel;
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

// A program bound to the layouts of its operands: what can be known before it runs. An output may share
// the memory of an input of the same layout.
class TileKernel {
 public:
  // `landing`: the output that lies where the given values are; -1 for none.
  TileKernel(const TileProgram& program, std::span<const Operand> inputs,
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
    LoopNest nest;          // of this operand alone
    int64_t element_bytes;  // of a direct one
    std::byte* address(const Operand& operand, int64_t element) const {
      return operand.base + (operand.layout->offset + element) * element_bytes;
    }
  };
  using Slots = SmallVector<std::byte*, 64>;

  static Path path_of(const Operand& operand, const Shape& shape, ComputeType type, bool direct);
  static ComputeType type_of(const std::optional<TileTransfer>& end) {
    return end ? end->type : ComputeType::f32;
  }
  bool can_write_directly(const TileTransfer& store, int slot) const;
  void place_slots();
  void run_steps(const Slots& at, int64_t count) const;
  void fill_constants(std::span<const Operand> inputs, int64_t count, const Slots& own) const;
  void load(std::span<const Operand> inputs, int64_t begin, int64_t count, const Slots& own,
            Slots& at) const;
  void store(std::span<const Operand> outputs, int64_t begin, int64_t count, const Slots& at) const;

  const TileProgram* program_;
  std::vector<Path> load_paths_, store_paths_;
  std::vector<uint64_t> constants_;  // by step: which inputs of a chain are one number
  std::vector<int64_t> offsets_;     // by slot: of its buffer; -1 where it needs none
  std::vector<bool> is_spread_;      // by slot: a constant that somebody reads as a whole tile
  int64_t tile_;                     // elements, so that all slots fit the L1 cache
};

}  // namespace brrr
