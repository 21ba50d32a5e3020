// A compiled program: a flat list of kernel calls over one arena. Running it allocates nothing but the
// tensors that it returns.
#pragma once

#include "brrr/compiler/plan_memory.h"
#include "brrr/compiler/precision.h"
#include "brrr/compiler/rematerialize.h"
#include "brrr/compiler/tile_stream.h"
#include "brrr/graph/graph.h"

namespace brrr {

struct PipelineOptions {
  PrecisionOptions precision = {};
  bool simplify = true;
  RematOptions remat;
  bool fuse = true;
  bool plan_memory = true;  // false: every temporary has bytes of its own
};

class Executable {
 public:
  Executable(Graph graph, const PipelineOptions& options = {});
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // Inputs must have the types that the program was compiled for. States are written in place.
  Tensors run(std::span<const Tensor> inputs);

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
    std::vector<std::unique_ptr<TileStream>> streams;  // by attachment
    std::vector<int64_t> first_pieces;  // of each, when they run side by side; their sum at the end
  };
  struct Patch {  // an operand whose address comes with the call
    size_t operand;
    Place place;
    int index;
  };

  void bind();
  std::byte* address_of(BufferId id) const;
  void add_operand(const Layout& layout, DType dtype, BufferId buffer);
  void add_core_operands(const std::vector<CoreOperand>& operands,
                         const std::vector<OperandRef>& refs);
  void bind_streams(Step& step, const std::vector<CoreOperand>& inputs,
                    const std::vector<CoreOperand>& outputs);
  void refresh_copies();
  void note_copies();
  void run_step(const Step& step, ThreadPool& pool) const;
  static void run_side_by_side(const Step& step, ThreadPool& pool);

  Graph graph_;
  KernelList list_;
  MemoryPlan plan_;
  Ref<Storage> arena_;
  std::vector<Operand> operands_;
  std::vector<Step> steps_;
  std::vector<Patch> patches_;
  std::vector<std::pair<std::vector<CoreOperand>, std::vector<CoreOperand>>> cores_;  // by step
  std::vector<int64_t> copied_;  // by state: the version of its master that it was cast from, or -1
};

}  // namespace brrr
