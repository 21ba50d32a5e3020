// How far away the bytes are that a kernel touches: how much else was touched since they were used last,
// in this step or, for parameters and their like, in the step before. Data used a moment ago comes from
// a cache, the moments of the optimizer from memory; the distance says which.
#pragma once

#include "brrr/compiler/lower/plan_memory.h"

namespace brrr::cost {

struct Touch {
  double bytes = 0;
  double distance = 0;  // bytes touched between the last use and this one
};

// By kernel, in steady state (the steps before were the same).
std::vector<std::vector<Touch>> trace_traffic(const compiler::KernelList& list,
                                              const compiler::MemoryPlan& plan);

}  // namespace brrr::cost
