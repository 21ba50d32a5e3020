// Facts of a GPU that kernels are chosen and cut by. Those of a device that is here come from its driver, those
// of a target that is not from the hardware table.
#pragma once

#include <cstdint>

namespace brrr {

struct Chip {
  int major = 0, minor = 0;  // compute capability: 8.0 Ampere, 8.9 Ada, 9.0 Hopper
  int sm_count = 0;
  int64_t l2_bytes = 0;
  int64_t shared_bytes_per_block = 0;  // the most that one block may ask for

  bool is_at_least(int wanted_major, int wanted_minor) const {
    return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
  }
};

}  // namespace brrr
