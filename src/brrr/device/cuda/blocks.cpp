// Device memory for tensors. The driver's own allocation takes longer than most kernels and its release
// waits for the whole device, so blocks that tensors give back are kept and handed out again. That is safe
// without waiting, since all work of a device runs in order on one stream.
#include "brrr/device/cuda/runtime.h"

#if BRRR_HAS_CUDA

#include <cuda_runtime_api.h>

#include <array>
#include <map>
#include <mutex>
#include <unordered_map>

#include "brrr/base/units.h"
#include "brrr/device/cuda/check.h"
#include "brrr/device/device.h"
#include "brrr/device/ledger.h"

namespace brrr::cuda {
namespace {

constexpr size_t kSmallestBlock = 512;
constexpr size_t kLargeBlock = size_t{2} << 20;  // the driver maps memory in pages of this size

// Sizes are rounded so that blocks fit again: to an eighth of their power of two, or to whole pages.
size_t rounded_size(size_t bytes) {
  if (bytes <= kSmallestBlock) return kSmallestBlock;
  size_t step = kLargeBlock;
  if (bytes < kLargeBlock) {
    step = kSmallestBlock;
    while (step * 8 < bytes) step *= 2;
  }
  return (bytes + step - 1) / step * step;
}

class BlockCache {
 public:
  void* take(int device, size_t bytes) {
    const size_t size = rounded_size(bytes);
    std::lock_guard lock(mutex_);
    // The smallest kept block that fits, unless it would waste more than a quarter.
    const auto found = kept_.lower_bound(size);
    if (found != kept_.end() && found->first <= size + size / 4) {
      void* memory = found->second;
      kept_bytes_ -= found->first;
      in_use_[memory] = found->first;
      kept_.erase(found);
      return memory;
    }
    void* memory = ask_driver(device, size);
    held_bytes_ += size;
    in_use_[memory] = size;
    return memory;
  }

  void give_back(void* memory) noexcept {
    std::lock_guard lock(mutex_);
    const auto found = in_use_.find(memory);
    if (found == in_use_.end()) return;
    kept_bytes_ += found->second;
    kept_.emplace(found->second, memory);
    in_use_.erase(found);
  }

  void drop_kept(int device) {
    std::lock_guard lock(mutex_);
    release_kept(device);
  }

  MemoryState state() const {
    std::lock_guard lock(mutex_);
    MemoryState state{.held_by_brrr = static_cast<int64_t>(held_bytes_),
                      .kept_for_reuse = static_cast<int64_t>(kept_bytes_),
                      .free = 0,
                      .total = 0};
    size_t free_bytes = 0, total_bytes = 0;
    require(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    state.free = static_cast<int64_t>(free_bytes);
    state.total = static_cast<int64_t>(total_bytes);
    return state;
  }

 private:
  void* ask_driver(int device, size_t size) {
    void* memory = nullptr;
    cudaError_t status = cudaMalloc(&memory, size);
    if (status == cudaErrorMemoryAllocation && !kept_.empty()) {
      cudaGetLastError();
      release_kept(device);
      status = cudaMalloc(&memory, size);
    }
    if (status == cudaErrorMemoryAllocation) fail_out_of_memory(device, size);
    require(status, "cudaMalloc(", Bytes(static_cast<int64_t>(size)), ")");
    return memory;
  }

  [[noreturn]] void fail_out_of_memory(int device, size_t size) const {
    cudaGetLastError();
    size_t free_bytes = 0, total_bytes = 0;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    const auto used = static_cast<int64_t>(total_bytes - free_bytes);
    fail("out of memory: asked for ", Bytes(static_cast<int64_t>(size)), " on cuda:", device,
         " of ", Bytes(static_cast<int64_t>(total_bytes)), ", where tensors of this program hold ",
         ledger(Device::cuda(device)).live(), ", and the driver and other programs ",
         Bytes(used - static_cast<int64_t>(held_bytes_)),
         "; use smaller sizes, or plan them first on the null device");
  }

  void release_kept(int device) {
    cudaStreamSynchronize(stream(device));
    for (const auto& [size, memory] : kept_) {
      cudaFree(memory);
      held_bytes_ -= size;
    }
    kept_.clear();
    kept_bytes_ = 0;
  }

  mutable std::mutex mutex_;
  std::multimap<size_t, void*> kept_;
  std::unordered_map<void*, size_t> in_use_;
  size_t kept_bytes_ = 0, held_bytes_ = 0;
};

// Never destroyed: tensors of static lifetime give their blocks back later than any destructor runs.
BlockCache& cache_of(int device) {
  static auto* caches = new std::array<BlockCache, kMaxCudaDevices>;
  return (*caches)[static_cast<size_t>(device)];
}

}  // namespace

void* allocate_bytes(int device, size_t bytes) {
  stream(device);
  return cache_of(device).take(device, bytes);
}

void release_bytes(int device, void* memory) noexcept {
  if (memory) cache_of(device).give_back(memory);
}

MemoryState memory_state(int device) {
  stream(device);
  return cache_of(device).state();
}

void return_kept_blocks(int device) { cache_of(device).drop_kept(device); }

}  // namespace brrr::cuda

#endif
