// Kernels bound to memory: operands with addresses, ready to be called one after the other. Addresses in
// the arena are fixed; those of inputs, states and outputs are set before a run.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "brrr/compiler/lower/plan_memory.h"
#include "brrr/graph/repeat.h"
#include "brrr/runtime/cpu/tile_stream.h"

namespace brrr::runtime {

// A copy between the host and a device.
struct HostCopy {
  bool is_to_device = true;
  bool is_pinned =
      false;  // of host memory that the device reads and writes itself; else the driver stages it
  int64_t bytes = 0;
  double seconds = 0;
};

// When each kernel of one call began, in seconds from the first, and how long it took.
struct KernelTimes {
  std::vector<double> begin, seconds;
  // On a GPU: copies of inputs and results, and what two readings of its clock are apart with nothing between
  // them, which is taken off `seconds`.
  std::vector<HostCopy> copies = {};
  double clock_seconds = 0;
};

class BoundProgram {
 public:
  // `program` must outlive this object; `arena` has as many bytes as its plan asks for.
  BoundProgram(const compiler::KernelProgram& program, std::byte* arena);
  ~BoundProgram();
  BoundProgram(const BoundProgram&) = delete;
  BoundProgram& operator=(const BoundProgram&) = delete;

  // Where the bytes of an input, state or output are from now on.
  void set_address(compiler::Place place, int index, std::byte* address);
  void run(ThreadPool& pool);
  void run_timed(ThreadPool& pool, KernelTimes& times);
  // Tells the cost counters of this thread about the last run.
  void count_last_run() const;

 private:
  struct Loop;
  struct Step {
    const compiler::Kernel* kernel;
    size_t first_operand, inputs, outputs;
    std::span<std::byte> workspace;
    std::unique_ptr<TileKernel> tiles;                 // of a fused kernel
    std::unique_ptr<Loop> loop;                        // of a repeat
    std::vector<std::unique_ptr<TileStream>> streams;  // by attachment
    std::vector<int64_t> first_pieces;  // of each, when they run side by side; their sum at the end
  };
  // The operands that show one input, state or output: a range of `shown_`.
  struct Shown {
    size_t first = 0, count = 0;
  };

  void add_step(const compiler::Kernel& kernel, std::byte* arena);
  void add_operand(const Layout& layout, DType dtype, compiler::BufferId id, std::byte* arena);
  void add_streams(Step& step, std::byte* arena);
  void find_shown();
  std::vector<Shown>& shown_in(compiler::Place place) {
    return places_[static_cast<size_t>(place)];
  }
  std::byte* address_of(compiler::BufferId id, std::byte* arena) const;
  void run_step(Step& step, ThreadPool& pool);
  void run_loop(Step& step, ThreadPool& pool);
  static void run_side_by_side(const Step& step, ThreadPool& pool);
  std::span<const Operand> inputs_of(const Step& step) const {
    return std::span(operands_).subspan(step.first_operand, step.inputs);
  }
  std::span<const Operand> outputs_of(const Step& step) const {
    return std::span(operands_).subspan(step.first_operand + step.inputs, step.outputs);
  }

  const compiler::KernelProgram* program_;
  std::deque<std::vector<compiler::CoreOperand>> cores_;  // what operands point into
  std::vector<Operand> operands_;
  std::vector<compiler::BufferId> buffers_;  // by operand; none where it is not in memory
  std::vector<Step> steps_;
  std::vector<size_t> shown_;  // positions in operands_
  std::vector<Shown> places_[4];
};

// The same for kernels that did not run, with as many iterations of a repeat as there can be: what a run is
// on a device that stores nothing.
void count_run(const compiler::KernelList& list);

}  // namespace brrr::runtime
