// Kernels that have nothing to do with each other run as one: the updates of all parameters, or the norms of
// all gradients. On the CPU that is one fork and join instead of hundreds, on a GPU one launch. Buffers are
// written once when this runs, so that reading is the only way to depend on a kernel.
#pragma once

#include <map>

#include "brrr/compiler/lower/kernel_list.h"

namespace brrr::compiler {

// By the buffer of a state's new value, the buffer of its old one. A kernel that writes the new one in place of
// the old runs behind all that read the old one, so these are never side by side.
using RenewedStates = std::map<BufferId, BufferId>;

// Joins programs that are neighbours in the list. A joined kernel has no op and no program, only attachments.
void group_programs(KernelList& list, const RenewedStates& renewed);

// For generated kernels: joins reductions, neighbours or not. A group waits until somebody reads a result of
// it, and lets others run ahead as long as that holds hardly any memory longer. A joined kernel has members;
// each gives the bits that it gives alone.
void group_reductions(KernelList& list, const RenewedStates& renewed);

}  // namespace brrr::compiler
