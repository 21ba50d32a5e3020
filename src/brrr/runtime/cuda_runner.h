// A compiled program on a GPU as a function of tensors: inputs go into fixed slots, the program is replayed,
// results come out of fixed slots. Tensors of some megabytes are used where they are instead.
#pragma once

#include "brrr/compiler/pipeline.h"
#include "brrr/runtime/cuda_program.h"

namespace brrr {

class CudaRunner {
 public:
  CudaRunner(const CompiledProgram& program, std::byte* arena, Device device);

  // Inputs have the types of the program; they live on its device or on the cpu. `times` may be null.
  Tensors run(std::span<const Tensor> inputs, KernelTimes* times);
  void wait() const;  // until all that was enqueued is done
  void count_last_run() const { bound_.count_last_run(); }
  int64_t launches_of_last_run() const { return bound_.launches_of_last_run(); }

 private:
  void give_input(size_t i, const Tensor& x);

  const CompiledProgram& program_;
  const Device device_;
  const cuda::Stream stream_;
  CudaProgram bound_;
  std::vector<Ref<Storage>> inputs_, outputs_;  // slots; none for large ones
  std::vector<Tensor> held_;                    // inputs that the last run reads in place
  bool is_fixed_ = true;                        // all inputs and outputs have slots
};

}  // namespace brrr
