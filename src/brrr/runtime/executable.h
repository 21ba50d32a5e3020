// A compiled program: a flat list of kernel calls over one arena. Running it allocates nothing but the
// tensors that it returns. The backend of its target runs it (runtime/runner.h). On the null device it has the same
// kernels and the same plan, and a run counts them instead of touching memory.
#pragma once

#include "brrr/base/units.h"
#include "brrr/compiler/pipeline.h"
#include "brrr/runtime/runner.h"

namespace brrr::runtime {

// What a program needs at its peak, by what holds it.
struct ProgramMemory {
  Bytes states, inputs, outputs;
  Bytes arena;  // temporaries and workspaces, at the instant when they are largest
  Bytes total() const;
};

class Executable {
 public:
  explicit Executable(graph::Graph graph, const compiler::PipelineOptions& options = {});
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // Inputs must have the types that the program was compiled for. States are written in place.
  Tensors run(std::span<const Tensor> inputs);
  // The same with results for the host: on a GPU they are on their way when this returns, and the next run
  // may be enqueued before they are taken. The program must outlive them.
  PendingResults enqueue(std::span<const Tensor> inputs);
  // The same with a clock around every kernel, about 50 ns each; `run` itself reads no clock.
  Tensors run_timed(std::span<const Tensor> inputs, KernelTimes& times);

  // Until what was enqueued on the program's device is done; the cpu is done when `run` returns.
  void wait() const;

  const graph::Graph& graph() const { return program_.graph; }
  const compiler::KernelList& kernels() const { return program_.kernels.list; }
  const compiler::MemoryPlan& plan() const { return program_.kernels.plan; }
  const compiler::CompiledProgram& program() const { return program_; }
  Device device() const { return device_; }
  // Of one run; a repeat counts with the largest number of iterations.
  Cost cost() const;
  ProgramMemory memory() const;
  // Of the last run on a GPU: what the host launched, a replayed graph being one.
  int64_t launches_of_last_run() const { return runner_->launches_of_last_run(); }

 private:
  struct HeldState {
    Storage* storage;
    bool is_written;
    bool is_shared;  // somebody besides this program held it when the program was made
  };

  void check_input(size_t i, const Tensor& x) const;
  void check_states() const;
  [[noreturn]] void fail_dropped(size_t state) const;
  Tensor own_input(const Tensor& x) const;
  bool is_written_state(const Storage& storage) const;
  void refresh_copies();
  void note_copies();
  Tensors usable_inputs(std::span<const Tensor> inputs);
  void note_run();
  Tensors run_with(std::span<const Tensor> inputs, KernelTimes* times);

  compiler::CompiledProgram program_;
  Device device_;
  Ref<Storage> arena_;
  std::unique_ptr<Runner> runner_;
  std::vector<HeldState> states_;
  std::vector<const Storage*> written_;  // by address
  std::vector<int64_t> copied_;  // by state: the version of its master that it was cast from, or -1
};

}  // namespace brrr::runtime
