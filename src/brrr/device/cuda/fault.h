// How a kernel says that its data is bad: an id that names no row, a target that is no class. It cannot
// throw, so it notes the fault in host memory that the GPU sees, reads nothing out of bounds, and goes on;
// the next wait() throws Error with the op and the value. The first fault stays.
#pragma once

#include <cstdint>

#include "brrr/base/host_device.h"

namespace brrr::cuda {

struct Fault {
  uint64_t name;  // host address of the op's name, a literal; 0: no fault
  int64_t name_bytes;
  int64_t value, size;  // the id, and the size of the axis that it should name a place of
};

Fault* fault_of(int device);  // the same address for host and GPU

// What a kernel takes along to report.
struct FaultNote {
  Fault* fault;
  uint64_t name;
  int64_t name_bytes;

#if defined(__CUDACC__)
  // True for an id in [0, size). Several threads may note at once: each word then is one of theirs.
  __device__ bool accepts(int64_t id, int64_t size) const {
    if (id >= 0 && id < size) return true;
    if (fault->name == 0) {
      fault->value = id;
      fault->size = size;
      fault->name_bytes = name_bytes;
      fault->name = name;
    }
    return false;
  }
#endif
};

}  // namespace brrr::cuda
