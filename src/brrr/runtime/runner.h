// What runs a compiled program on one kind of device, and what counts it where nothing is stored.
#pragma once

#include "brrr/compiler/pipeline.h"
#include "brrr/runtime/cpu/bound_program.h"
#include "brrr/runtime/cuda/cuda_slots.h"

namespace brrr::runtime {

class Runner {
 public:
  virtual ~Runner() = default;

  // Inputs have the types of the program. `times` may be null.
  virtual Tensors run(std::span<const Tensor> inputs, KernelTimes* times) = 0;
  // The same with results for the host, which may be on their way when this returns.
  virtual PendingResults enqueue(std::span<const Tensor> inputs) {
    return PendingResults(run(inputs, nullptr));
  }
  virtual void wait() const {}  // until all that was enqueued is done
  // Tells the cost counters of this thread about the last run.
  virtual void count_last_run() const = 0;
  // What the host launched in the last run, a replayed graph being one; 0 where nothing is launched.
  virtual int64_t launches_of_last_run() const { return 0; }
  // Whether inputs may live on the cpu when the program does not.
  virtual bool copies_host_inputs() const { return false; }
};

}  // namespace brrr::runtime
