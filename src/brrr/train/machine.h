// What this process may use: cores, memory and disk, as the container allows and not as the machine shows.
#pragma once

#include <filesystem>

#include "brrr/base/units.h"

namespace brrr::training {

struct MachineFacts {
  int cores = 1;
  Bytes memory;               // free for this process now
  FlopsPerSecond peak_flops;  // measured, f32
};
MachineFacts look_at_machine();

// The least of what the system has left, what the control groups leave (base/cgroup.h), and `ulimit -v`.
Bytes available_memory();
// Free bytes on the disk that will hold `path`, which need not be there yet.
Bytes available_disk(const std::filesystem::path& path);

}  // namespace brrr::training
