// What the CUDA runtime says about the GPUs, as plain structs: nvcc sees no more C++ than this.
#pragma once

#include <cstdint>

namespace brrr {

struct CudaCount {
  int gpus;
  char error[128];  // empty when the call went well
};

struct CudaGpu {
  char name[256];
  char bus_id[32];
  int major, minor, multiprocessors, clock_khz;
  int64_t memory_bytes, free_bytes, l2_bytes, shared_bytes;
};

CudaCount count_cuda_gpus();
CudaGpu query_cuda_gpu(int index);

}  // namespace brrr
