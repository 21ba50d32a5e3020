// What distinguishes one kind of hardware for the compiler and the runtime, as one value: its passes in order, what
// fuses, how kernels are chosen, and what runs them. A backend is a folder of backends/ that defines one.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "brrr/base/units.h"
#include "brrr/compiler/fuse/fuse.h"
#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/lower/kernel_list.h"
#include "brrr/compiler/remat/remat_budget.h"
#include "brrr/compiler/target.h"

namespace brrr::runtime {
class Runner;  // runtime/runner.h
}

namespace brrr::compiler {

struct PipelineOptions;
struct CompiledProgram;

// What a pass may ask besides the graph.
struct PassContext {
  const PipelineOptions& options;
  const Target& target;
  Device device;         // where the graph's tensors are
  GraphPlanner planner;  // lowers a graph with the passes after this one and plans its memory
};

// A pass from graph to graph. It sees the body of a repeat as a graph of its own, before the program around it; states
// and inputs keep their types. One that `enters_bodies` sees the program alone, and takes the bodies in it along.
struct GraphPass {
  std::string_view name;
  std::string_view description;  // for `brrr explain`
  Graph (*run)(const Graph& graph, const PassContext& context);
  bool is_required =
      false;  // it says what the program means, or what can run: it cannot be left out
  bool enters_bodies = false;
};

struct Backend {
  std::string_view name;  // "cpu", "cuda"
  std::span<const GraphPass> passes;
  // What joins into one kernel, and how regions become kernels. `enabled` and `group` are the pipeline's.
  FuseOptions (*fuse_options)(const Target& target);
  LowerOptions (*lower_options)(const Target& target);
  // Chooses the kernel of each entry and adds its scratch.
  void (*select)(KernelList& list, const Target& target, ThreadPool& pool);
  int64_t alignment;  // of buffers in the arena, in bytes
  // Throws Error where the arena does not fit the device now; null: nobody asks before allocating.
  void (*require_memory)(Device device, Bytes arena) = nullptr;
  // What runs the program on a device that is here. `arena` has as many bytes as the plan asks for.
  std::unique_ptr<runtime::Runner> (*bind)(const CompiledProgram& program, std::byte* arena,
                                           Device device);
};

// Passes that every backend shares, to be listed in its order.
namespace passes {
GraphPass precision();
GraphPass simplify();
GraphPass chunk_head();
GraphPass rematerialize();
}  // namespace passes

}  // namespace brrr::compiler
