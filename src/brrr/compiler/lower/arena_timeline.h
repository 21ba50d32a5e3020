// A memory plan over time: which bytes of the arena are taken while each kernel runs.
#pragma once

#include <string>
#include <vector>

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/lower/plan_memory.h"

namespace brrr::compiler {

// A buffer of the arena while kernels [first, last] run.
struct PlannedBuffer {
  size_t buffer;
  int64_t offset, bytes;
  int first, last;
  std::string made_by;  // the kernel that writes it first; "workspace of ..." for scratch
  Phase phase;
};
// By offset; buffers without bytes are left out.
std::vector<PlannedBuffer> planned_buffers(const KernelList& list, const MemoryPlan& plan);

// Bytes taken while each kernel runs; buffers that share bytes count once.
std::vector<int64_t> bytes_over_time(const KernelList& list, const MemoryPlan& plan);

}  // namespace brrr::compiler
