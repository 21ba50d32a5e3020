#include "brrr/train/machine.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "brrr/base/cgroup.h"
#include "brrr/base/thread_pool.h"
#include "brrr/hardware/measure.h"

namespace brrr::training {
namespace fs = std::filesystem;
namespace {

// The number behind a name in /proc/meminfo, in KiB there.
std::optional<int64_t> meminfo(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  std::string unit;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == name) return kib * 1024;
  }
  return {};
}

// What `ulimit -v` leaves of the address space, where it is set.
std::optional<int64_t> address_space_left() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;  // its first number: pages of address space in use
  return std::max<int64_t>(static_cast<int64_t>(limit.rlim_cur) - pages * sysconf(_SC_PAGESIZE), 0);
}

// Measured once for each number of threads: it does not change while a program runs.
FlopsPerSecond peak_of(int threads) {
  static std::mutex mutex;
  static std::map<int, FlopsPerSecond> known;
  const std::scoped_lock lock(mutex);
  const auto found = known.find(threads);
  return found != known.end() ? found->second : known[threads] = hardware::measure_peak();
}

}  // namespace

Bytes available_memory() {
  const Bytes free(std::min(meminfo("MemAvailable:").value_or(std::numeric_limits<int64_t>::max()),
                            address_space_left().value_or(std::numeric_limits<int64_t>::max())));
  return std::min(free, cgroup_free_memory().value_or(free));
}

Bytes available_disk(const fs::path& path) {
  fs::path there = fs::absolute(path);
  while (!fs::exists(there) && there.has_parent_path()) there = there.parent_path();
  std::error_code unknown;
  const fs::space_info space = fs::space(there, unknown);
  constexpr auto kMost = static_cast<uintmax_t>(std::numeric_limits<int64_t>::max());
  return Bytes(unknown ? kMost : std::min(space.available, kMost));
}

MachineFacts look_at_machine() {
  return {.cores = thread_pool().threads(),
          .memory = available_memory(),
          .peak_flops = peak_of(thread_pool().threads())};
}

}  // namespace brrr::training
