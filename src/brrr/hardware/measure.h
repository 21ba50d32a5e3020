// What this machine really does: a timer, the peak of its arithmetic, the bandwidth of its memory.
// All threads of thread_pool() take part, so results belong to that number of threads.
#pragma once

#include <functional>
#include <string>

#include "brrr/base/units.h"
#include "brrr/tensor/dtype.h"

namespace brrr::hardware {

// As the system reports it: "Intel(R) Xeon(R) Processor".
std::string cpu_name();

// One warm-up call, then the median time of `trials` calls: one slow call (an interrupt, a page
// fault) does not move it, unlike the mean.
Seconds time_median(const std::function<void()>& work, int trials = 5);

// The highest FLOP/s of multiply-adds between registers, in f32 or f64: what no kernel can exceed.
// The best of several short trials, since a shared machine only ever makes it slower. About 0.1 s.
FlopsPerSecond measure_peak(DType dtype = DType::f32);

// Kernels write with ordinary stores, which fetch a line before they overwrite it; streaming stores
// go past the caches and fetch nothing.
enum class Stores : uint8_t { ordinary, streaming };

struct MemoryRates {
  BytesPerSecond read;   // summing an array
  BytesPerSecond write;  // filling an array
  BytesPerSecond copy;   // bytes read and bytes written together
  Bytes working_set;     // of each array, all threads together
};
// Over arrays twice as large as the last cache (64 MiB to 1 GiB), so that they come from memory.
MemoryRates measure_memory(Stores stores = Stores::streaming);
// Each thread over and over through two arrays of its own that take `per_thread` together.
MemoryRates measure_cache(Bytes per_thread);

}  // namespace brrr::hardware
