// The devices that brrr knows by itself, from data sheets and from what others measured.
#include "brrr/account/hardware_table.h"

namespace brrr {

std::vector<GpuSpec> builtin_gpus() {
  std::vector<GpuSpec> all;
  for (auto* part :
       {ampere_and_before, hopper_and_after, geforce_gpus, amd_gpus, tpus, apple_gpus}) {
    for (GpuSpec& gpu : part()) all.push_back(std::move(gpu));
  }
  return all;
}

}  // namespace brrr
