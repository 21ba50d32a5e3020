// A compiled program on a GPU as a function of tensors: inputs go into fixed slots, the program is replayed,
// results come out of fixed slots (cuda_slots.h). Large tensors are used where they are instead.
#pragma once

#include "brrr/compiler/pipeline.h"
#include "brrr/runtime/cuda/cuda_program.h"
#include "brrr/runtime/cuda/cuda_slots.h"
#include "brrr/runtime/runner.h"

namespace brrr::runtime {

class CudaRunner final : public Runner {
 public:
  CudaRunner(const compiler::CompiledProgram& program, std::byte* arena, Device device);

  // Inputs have the types of the program; they live on its device or on the cpu. `times` may be null.
  Tensors run(std::span<const Tensor> inputs, KernelTimes* times) override;
  // The same with results on their way to the host. Nothing waits: the host may be several runs ahead.
  PendingResults enqueue(std::span<const Tensor> inputs) override;
  void wait() const override;
  void count_last_run() const override { bound_.count_last_run(); }
  int64_t launches_of_last_run() const override { return bound_.launches_of_last_run(); }
  bool copies_host_inputs() const override { return true; }

 private:
  // `clock` may be null.
  void give_inputs(std::span<const Tensor> inputs, CopyClock* clock);
  void give_in_place(size_t i, const Tensor& x, CopyClock* clock);
  std::shared_ptr<HostSlot> fetch_results(CopyClock* clock);
  Tensors results_with_memory(bool for_slots_too);
  const std::vector<TensorType>& result_types() const { return program_.kernels.list.outputs; }

  const compiler::CompiledProgram& program_;
  const Device device_;
  const cuda::Stream stream_;
  CudaProgram bound_;
  SlotBlock inputs_, outputs_;
  HostSlots staged_, fetched_;  // pinned, for inputs and for results
  std::vector<Tensor> held_;    // inputs that the last run reads in place
};

}  // namespace brrr::runtime
