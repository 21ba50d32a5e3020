// The rungs of the ladder that a GPU has: a thread a result, tiles in shared memory, matrix units, the vendor's
// library, and the product of this library.
#pragma once

#include "brrr/napkin/ladder.h"

namespace brrr {

// Measured on the first GPU with matrices of n x n (a multiple of 64); where there is none each rung says why.
std::vector<Rung> climb_gpu(int64_t n);

}  // namespace brrr
