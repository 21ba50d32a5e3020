// Joins elementwise regions to the reduction, norm or product beside them.
#pragma once

#include <map>

#include "brrr/compiler/fuse/region_set.h"

namespace brrr::compiler {

// By region: its core with what is attached to it; regions without a core are not there. Each elementwise
// region goes where it saves most traffic: behind the core that makes one of its operands, or before the
// core that reads one of its results. `regions` is joined accordingly.
std::map<size_t, Region> attach_to_cores(RegionSet& regions, const FuseOptions& options);

}  // namespace brrr::compiler
