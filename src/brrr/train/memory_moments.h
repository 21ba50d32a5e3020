// The memory of a step over its kernels, as a run keeps it for its report.
#pragma once

#include <vector>

#include "brrr/compiler/lower/plan_memory.h"
#include "brrr/run/run_log.h"

namespace brrr::training {

// Bytes of the arena that are taken while each kernel runs; a long list is thinned to `most` moments, each
// the fullest of those it stands for.
std::vector<runs::MemoryMoment> memory_moments(const compiler::KernelList& list,
                                               const compiler::MemoryPlan& plan, size_t most = 400);

}  // namespace brrr::training
