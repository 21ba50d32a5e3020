#include "brrr/device/gpu_info.h"

#if BRRR_HAS_CUDA
#include "brrr/device/cuda/query.h"
#endif

namespace brrr {

#if BRRR_HAS_CUDA

GpuList list_gpus() {
  GpuList list;
  const CudaCount found = count_cuda_gpus();
  if (found.gpus == 0) list.reason = found.error[0] ? found.error : "the driver reports no GPU";
  for (int i = 0; i < found.gpus; ++i) {
    const CudaGpu gpu = query_cuda_gpu(i);
    list.gpus.push_back({.name = gpu.name,
                         .major = gpu.major,
                         .minor = gpu.minor,
                         .multiprocessors = gpu.multiprocessors,
                         .clock_mhz = gpu.clock_khz / 1000,
                         .bus_id = gpu.bus_id,
                         .memory = Bytes(gpu.memory_bytes),
                         .free_memory = Bytes(gpu.free_bytes),
                         .l2_cache = Bytes(gpu.l2_bytes),
                         .shared_memory_per_block = Bytes(gpu.shared_bytes)});
  }
  return list;
}

#else

GpuList list_gpus() {
  return {.gpus = {}, .reason = "this build has no CUDA (configure with -DBRRR_CUDA=ON)"};
}

#endif

}  // namespace brrr
