#include <cuda_runtime.h>

#include <cstdio>

#include "brrr/device/cuda/query.h"

namespace brrr {
namespace {

int attribute(cudaDeviceAttr name, int index) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, name, index) == cudaSuccess ? value : 0;
}

}  // namespace

CudaCount count_cuda_gpus() {
  CudaCount count{};
  const cudaError_t status = cudaGetDeviceCount(&count.gpus);
  if (status !=
      cudaSuccess) {  // no driver is an answer, not a failure: the machine has no GPU to use
    count.gpus = 0;
    std::snprintf(count.error, sizeof(count.error), "%s", cudaGetErrorString(status));
    cudaGetLastError();
  }
  return count;
}

CudaGpu query_cuda_gpu(int index) {
  CudaGpu gpu{};
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) return gpu;
  std::snprintf(gpu.name, sizeof(gpu.name), "%s", properties.name);
  if (cudaDeviceGetPCIBusId(gpu.bus_id, sizeof(gpu.bus_id), index) != cudaSuccess)
    gpu.bus_id[0] = 0;
  gpu.major = properties.major;
  gpu.minor = properties.minor;
  gpu.multiprocessors = properties.multiProcessorCount;
  gpu.clock_khz = attribute(cudaDevAttrClockRate, index);
  gpu.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  gpu.l2_bytes = properties.l2CacheSize;
  gpu.shared_bytes = static_cast<int64_t>(properties.sharedMemPerBlockOptin);
  size_t free_bytes = 0, total_bytes = 0;
  if (cudaSetDevice(index) == cudaSuccess &&
      cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess) {
    gpu.free_bytes = static_cast<int64_t>(free_bytes);
  }
  return gpu;
}

}  // namespace brrr
