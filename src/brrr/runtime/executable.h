// A compiled program: a flat list of kernel calls over one arena. Running it allocates nothing but the
// tensors that it returns.
#pragma once

#include "brrr/compiler/plan_memory.h"
#include "brrr/graph/graph.h"

namespace brrr {

struct PipelineOptions {
  bool simplify = true;
  bool fuse = true;
  bool plan_memory = true;  // false: every temporary has bytes of its own
};

// When each kernel of one call began, in seconds from the first, and how long it took.
struct KernelTimes {
  std::vector<double> begin, seconds;
};

class Executable {
 public:
  Executable(Graph graph, const PipelineOptions& options = {});
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // Inputs must have the types that the program was compiled for. States are written in place.
  Tensors run(std::span<const Tensor> inputs);
  // The same with a clock around every kernel, about 50 ns each; `run` itself reads no clock.
  Tensors run_timed(std::span<const Tensor> inputs, KernelTimes& times);

  const Graph& graph() const { return graph_; }
  const KernelList& kernels() const { return list_; }
  const MemoryPlan& plan() const { return plan_; }
  Cost cost() const;

 private:
  struct Step {
    const Kernel* kernel;
    size_t first_operand, inputs, outputs;
    std::span<std::byte> workspace;
    std::unique_ptr<TileKernel> tiles;
  };
  struct Patch {  // an operand whose address comes with the call
    size_t operand;
    Place place;
    int index;
  };

  void bind();
  Tensors run_with(std::span<const Tensor> inputs, KernelTimes* times);
  void time_steps(KernelTimes& times, ThreadPool& pool) const;
  void run_step(const Step& step, ThreadPool& pool) const;

  Graph graph_;
  KernelList list_;
  MemoryPlan plan_;
  Ref<Storage> arena_;
  std::vector<Operand> operands_;
  std::vector<Step> steps_;
  std::vector<Patch> patches_;
};

}  // namespace brrr
