// What the control groups of this process allow. A container may show 64 cores and 256 GiB and grant two of
// each; whoever believes the machine is throttled or killed. Both versions are read, and every group from
// that of the process up to the root, as the narrowest counts:
//
//                     version 2 (one tree)                 version 1 (a tree for each controller)
//   cores             cpu.max: "quota period"              cpu.cfs_quota_us / cpu.cfs_period_us
//   memory            memory.max, memory.high              memory.limit_in_bytes
//   of that in use    memory.current                       memory.usage_in_bytes
#pragma once

#include <filesystem>
#include <optional>

#include "brrr/base/units.h"

namespace brrr {

// `root` stands before /proc and /sys, for tests. Nothing where no group has a limit.
std::optional<double> cgroup_cores(const std::filesystem::path& root = "/");

// What is left of the narrowest limit. Pages of files that were read count as free, since the kernel drops
// them when memory is asked for.
std::optional<Bytes> cgroup_free_memory(const std::filesystem::path& root = "/");

}  // namespace brrr
