// The kernels of a program in launch order with what each is predicted to cost: what `brrr train --dry-run --kernels`
// and `brrr napkin train --kernels` print, so that a plan can be held against a run kernel by kernel.
#pragma once

#include <string>
#include <vector>

#include "brrr/compiler/lower/plan_memory.h"
#include "brrr/hardware/rates.h"

namespace brrr::cost {

struct KernelLine {
  std::string name;          // "matmul", "mul+add+gelu"
  std::string phase;         // "forward", "backward", "update", ...
  std::string dtype, shape;  // of its first result: "bf16", "[64, 1024, 768]"
  int64_t count =
      1;  // launches: equal neighbours are one line, and those of a repeat run once per iteration
  double flops = 0, bytes = 0, seconds = 0;  // of all of them
  std::string regime;  // what bounds the first of them: compute, bandwidth or overhead

  bool operator==(const KernelLine&) const = default;
};

std::vector<KernelLine> kernel_lines(const compiler::KernelList& list,
                                     const compiler::MemoryPlan& plan,
                                     const hardware::Rates& rates);

}  // namespace brrr::cost
