// A repeat on a GPU: its body with memory of its own, and slots for what changes from one iteration to the next. A counter
// on the device says which iteration it is, so that all are one captured graph:
//
//   graph   what lies before the loop, first values of its states, iteration 0
//   next    one iteration                                                        (count - 1 launches)
//
// and what lies behind the loop is one more launch: n + 1 for n micro-batches.
#pragma once

#include <algorithm>
#include <optional>

#include "brrr/device/cuda/slices.h"
#include "brrr/runtime/cuda/cuda_program.h"

namespace brrr::runtime {

// Blocks besides the arena: what they take, and one of them.
inline int64_t side_block(int64_t bytes) { return std::max<int64_t>(bytes, 16); }
inline Ref<Storage> device_bytes(int device, int64_t bytes) {
  return Storage::allocate(Device::cuda(device), side_block(bytes), Category::workspace);
}
int64_t loop_bytes(const compiler::Kernel& kernel);

// The arena of the body lies inside that of the program around it.
struct CudaProgram::Loop {
  Loop(const compiler::KernelList& list, const compiler::Kernel& kernel, std::byte* arena,
       int device);

  int64_t* counter() const { return reinterpret_cast<int64_t*>(slots[0]->data()); }

  graph::RepeatNode parts;
  CudaProgram body;
  std::vector<Ref<Storage>> slots;  // of the counter and of every sliced operand
  std::optional<int64_t> constant;  // the count, where the program has it as a number
  int64_t count = 0;                // iterations of the last run
};

}  // namespace brrr::runtime
