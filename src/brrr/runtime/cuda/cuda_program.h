// Kernels bound to the memory of a GPU. Steps that follow each other are captured once and replayed as one
// launch; a repeat is one launch for every iteration, the first of them with what lies before the loop, and nothing waits
// between them (runtime/cuda/cuda_loop.h).
//
// Addresses are fixed before the first run. A run whose addresses change from call to call (large inputs
// that are not copied into slots) launches its kernels one by one instead.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "brrr/compiler/codegen/codegen_cuda.h"
#include "brrr/compiler/lower/plan_memory.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/graph/cuda_call.h"
#include "brrr/graph/repeat.h"
#include "brrr/runtime/cpu/bound_program.h"
#include "brrr/tensor/storage.h"

namespace brrr::runtime {

// Device memory that a program takes besides its arena: tables of pointers, slots and counters of loops.
Bytes side_bytes(const compiler::KernelList& list);

class CudaProgram {
 public:
  // `program` must outlive this object; `arena` has as many bytes as its plan asks for.
  CudaProgram(const compiler::KernelProgram& program, std::byte* arena, int device);
  ~CudaProgram();
  CudaProgram(const CudaProgram&) = delete;
  CudaProgram& operator=(const CudaProgram&) = delete;

  // Where the bytes of an input, state or output are from now on.
  void set_address(compiler::Place place, int index, std::byte* address);

  // Enqueues a run. The first goes kernel by kernel, which loads code and lets libraries choose; with
  // `replay` the second is captured, and that and all later ones are replayed.
  void run(bool replay);
  // Kernel by kernel with a clock around each; waits for the last.
  void run_timed(KernelTimes& times);
  void count_last_run() const;

  int64_t launches_of_last_run() const { return launches_; }  // as the host made them

 private:
  struct Loop;
  struct Step {
    const compiler::Kernel* kernel;
    size_t first_operand;
    const CudaKernel* op_kernel = nullptr;  // where it runs by the kernel of its op
    std::span<std::byte> workspace;
    std::unique_ptr<Loop> loop;             // of a repeat
    std::vector<const cuda::Kernel*> code;  // of a generated kernel, by launch
    std::vector<Ref<Storage>> tables;       // by launch: pointers in device memory, or null
  };
  // Steps that run without the host in between: [begin, end), and the loop behind them where there is one.
  struct Section {
    size_t begin, end;
    Step* loop = nullptr;
    cuda::Graph graph = {};  // the steps, and the first iteration
    cuda::Graph next = {};   // any other iteration
  };

  void add_step(const compiler::Kernel& kernel, std::byte* arena);
  void add_sections();
  std::byte* arena_address(compiler::BufferId id, std::byte* arena) const;
  std::span<const Operand> inputs_of(const Step& step) const;
  std::span<const Operand> outputs_of(const Step& step) const;
  void* address_of(const Step& step, const compiler::KernelPointer& pointer) const;
  void upload_tables();
  void launch_step(Step& step);
  void launch_generated(Step& step);
  void wait_for(const compiler::Kernel& kernel) const;
  void launch_steps(const Section& section);
  // Records the work where the graph does not have it yet, and launches the graph.
  void launch_recorded(cuda::Graph& graph, const std::function<void()>& work);

  // ---- loops (cuda_loop.cpp)
  int64_t count_of(const Step& step);
  void bind_loop(Step& step);
  void start_loop(Step& step);
  void take_slices(const Step& step) const;
  static bool may_record(const Step& step);
  void run_loop(Step& step);
  void replay_loop(Section& section);

  const compiler::KernelProgram* program_;
  const int device_;
  const cuda::Stream stream_;
  std::vector<Operand> operands_;            // of each step: inputs, then outputs
  std::vector<compiler::BufferId> buffers_;  // by operand
  std::vector<Step> steps_;
  std::vector<Section> sections_;
  bool addresses_changed_ = true;
  int64_t runs_ = 0, launches_ = 0;
};

}  // namespace brrr::runtime
