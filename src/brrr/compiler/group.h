// Programs that have nothing to do with each other run as one kernel: the updates of all parameters
// become one pass, with one fork and join instead of hundreds.
#pragma once

#include "brrr/compiler/kernel_list.h"

namespace brrr {

// Joins neighbours in the list. A joined kernel has no op and no program, only attachments.
void group_programs(KernelList& list);

}  // namespace brrr
