// Where every temporary lives: one arena, planned before the run. Two buffers share bytes when their
// lifetimes do not meet; an elementwise kernel writes over an operand that nobody needs any more.
#pragma once

#include "brrr/compiler/lower/kernel_list.h"

namespace brrr::compiler {

inline constexpr int64_t kArenaAlignment = 64;

struct MemoryPlan {
  std::vector<int64_t> offsets;  // by buffer; -1 where it is not in the arena
  int64_t arena_bytes = 0;       // the peak of what the plan needs
  int64_t lower_bound = 0;       // the largest sum of buffers alive at one instant
};

// Kernels and where their operands are.
struct KernelProgram {
  KernelList list;
  MemoryPlan plan;
};

struct PlanOptions {
  bool share = true;                    // false: every buffer has bytes of its own
  int64_t alignment = kArenaAlignment;  // a multiple of it
};

MemoryPlan plan_memory(const KernelList& list, const PlanOptions& options = {});

}  // namespace brrr::compiler
