// The rungs of the ladder that a GPU has: a thread a result, tiles in shared memory, results in registers, matrix
// units, tiles fetched ahead, the vendor's library, and the product of this library.
#pragma once

#include "brrr/plan/ladder/ladder.h"

namespace brrr::plan {

struct GpuClimb {
  std::string name;                  // of the GPU; empty where there is none
  double peak_flops_per_second = 0;  // the best of several large bf16 products
  std::vector<Rung> rungs;
};

// Measured on the first GPU with matrices of n x n (a multiple of 128); where there is none each rung says why.
GpuClimb climb_gpu(int64_t n);

}  // namespace brrr::plan
