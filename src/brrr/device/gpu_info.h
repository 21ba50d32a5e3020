// Which GPUs this machine has. Works in every build: without CUDA, or without a GPU, the list is
// empty and the reason is given.
#pragma once

#include <string>
#include <vector>

#include "brrr/base/units.h"

namespace brrr {

struct GpuInfo {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int clock_mhz = 0;
  std::string bus_id;  // "0000:3B:00.0": what the driver's tools name it by
  Bytes memory, free_memory, l2_cache, shared_memory_per_block;
};

struct GpuList {
  std::vector<GpuInfo> gpus;
  std::string reason;  // why there are none
};

GpuList list_gpus();

}  // namespace brrr
