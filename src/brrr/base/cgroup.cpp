#include "brrr/base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace brrr {
namespace fs = std::filesystem;
namespace {

// The only word of a file that may also say "max" or not be there at all.
std::optional<int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (file >> value) return value;
  return {};
}

// The sum of the named lines of a memory.stat, such as "inactive_file 4096".
int64_t sum_in(const fs::path& path, std::initializer_list<std::string_view> names) {
  std::ifstream file(path);
  std::string name;
  int64_t value = 0, sum = 0;
  while (file >> name >> value) {
    if (std::find(names.begin(), names.end(), name) != names.end()) sum += value;
  }
  return sum;
}

bool lists(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const size_t end = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, end) == wanted) return true;
    controllers.remove_prefix(std::min(end + 1, controllers.size()));
  }
  return false;
}

// `group` and every group above it, up to the folder where the tree is mounted. Inside a container the tree
// often begins at the container's own group, and the path that /proc tells is not there: the mount then is
// the group itself.
void add_groups(std::vector<fs::path>& groups, const fs::path& mount, fs::path group) {
  while (group.has_relative_path()) {
    const fs::path folder = mount / group.relative_path();
    if (fs::is_directory(folder)) groups.push_back(folder);
    group = group.parent_path();
  }
  groups.push_back(mount);
}

// Folders whose files may limit what `controller` deals out. Lines of /proc/self/cgroup:
//   0::/user.slice/run-7.scope           version 2
//   4:memory:/docker/1f2e                version 1, mounted in a folder named by its controllers
std::vector<fs::path> groups_of(const fs::path& root, std::string_view controller) {
  const fs::path mounts = root / "sys/fs/cgroup";
  std::vector<fs::path> groups;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) {
      add_groups(groups, mounts, group);
      add_groups(groups, mounts / "unified", group);  // beside version 1
    } else if (lists(controllers, controller)) {
      add_groups(groups, mounts / controllers, group);
      if (controllers != controller) add_groups(groups, mounts / controller, group);
    }
  }
  return groups;
}

std::optional<double> cores_of(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  double quota_us = 0, period_us = 0;
  if (!(file >> quota_us >> period_us)) {
    const auto quota = number_in(group / "cpu.cfs_quota_us"),
               period = number_in(group / "cpu.cfs_period_us");
    if (!quota || !period) return {};
    quota_us = static_cast<double>(*quota), period_us = static_cast<double>(*period);
  }
  if (quota_us <= 0 || period_us <= 0) return {};  // version 1 writes -1 for no limit
  return quota_us / period_us;
}

std::optional<Bytes> free_memory_of(const fs::path& group) {
  std::optional<int64_t> limit = number_in(group / "memory.max");
  const auto throttled_from = number_in(group / "memory.high");
  if (throttled_from) limit = std::min(*throttled_from, limit.value_or(*throttled_from));
  if (!limit) limit = number_in(group / "memory.limit_in_bytes");
  auto used = number_in(group / "memory.current");
  if (!used) used = number_in(group / "memory.usage_in_bytes");
  if (!limit || !used) return {};
  const bool is_first_version = fs::exists(group / "memory.limit_in_bytes");
  const int64_t files =
      is_first_version ? sum_in(group / "memory.stat", {"total_inactive_file", "total_active_file"})
                       : sum_in(group / "memory.stat", {"inactive_file", "active_file"});
  return Bytes(std::max<int64_t>(*limit - std::max<int64_t>(*used - files, 0), 0));
}

// The least of what the groups say, where any says something.
template <typename Value>
std::optional<Value> least(const std::vector<fs::path>& groups,
                           std::optional<Value> (*limit_of)(const fs::path&)) {
  std::optional<Value> least_yet;
  for (const fs::path& group : groups) {
    const std::optional<Value> limit = limit_of(group);
    if (limit && (!least_yet || *limit < *least_yet)) least_yet = limit;
  }
  return least_yet;
}

}  // namespace

std::optional<double> cgroup_cores(const fs::path& root) {
  return least(groups_of(root, "cpu"), cores_of);
}

std::optional<Bytes> cgroup_free_memory(const fs::path& root) {
  return least(groups_of(root, "memory"), free_memory_of);
}

}  // namespace brrr
