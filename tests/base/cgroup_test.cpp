// Limits of containers, read from trees of files as the kernel shows them.
#include "brrr/base/cgroup.h"

#include <gtest/gtest.h>

#include "support/temp_folder.h"

namespace brrr {
namespace {

namespace fs = std::filesystem;

// What stands under / inside a container.
class FakeRoot {
 public:
  explicit FakeRoot(std::string_view membership) { file("proc/self/cgroup", membership); }
  FakeRoot& file(const std::string& path, std::string_view text) {
    fs::create_directories((folder_ / path).parent_path());
    folder_.write(path, text);
    return *this;
  }
  const fs::path& path() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

TEST(Cgroup, AMachineWithoutGroupsHasNoLimits) {
  const TempFolder nothing;
  EXPECT_FALSE(cgroup_cores(nothing.path()));
  EXPECT_FALSE(cgroup_free_memory(nothing.path()));
}

TEST(Cgroup, ReadsTheQuotaOfAContainerWithItsOwnTree) {
  FakeRoot root("0::/\n");
  root.file("sys/fs/cgroup/cpu.max", "150000 100000\n")
      .file("sys/fs/cgroup/memory.max", "1073741824\n")
      .file("sys/fs/cgroup/memory.current", "73741824\n");
  EXPECT_EQ(cgroup_cores(root.path()), 1.5);
  EXPECT_EQ(cgroup_free_memory(root.path()), Bytes(1'000'000'000));
}

TEST(Cgroup, MaxIsNoLimit) {
  FakeRoot root("0::/\n");
  root.file("sys/fs/cgroup/cpu.max", "max 100000\n")
      .file("sys/fs/cgroup/memory.max", "max\n")
      .file("sys/fs/cgroup/memory.high", "max\n")
      .file("sys/fs/cgroup/memory.current", "5000\n");
  EXPECT_FALSE(cgroup_cores(root.path()));
  EXPECT_FALSE(cgroup_free_memory(root.path()));
}

TEST(Cgroup, TheNarrowestGroupOnTheWayUpCounts) {
  FakeRoot root("0::/batch.slice/job.scope\n");
  root.file("sys/fs/cgroup/batch.slice/job.scope/cpu.max", "400000 100000\n")
      .file("sys/fs/cgroup/batch.slice/cpu.max", "300000 100000\n")
      .file("sys/fs/cgroup/batch.slice/job.scope/memory.max", "max\n")
      .file("sys/fs/cgroup/batch.slice/job.scope/memory.current", "100\n")
      .file("sys/fs/cgroup/batch.slice/memory.max", "5000\n")
      .file("sys/fs/cgroup/batch.slice/memory.high", "4000\n")
      .file("sys/fs/cgroup/batch.slice/memory.current", "1000\n")
      .file("sys/fs/cgroup/other.slice/cpu.max", "100000 100000\n");
  EXPECT_EQ(cgroup_cores(root.path()), 3.0);
  EXPECT_EQ(cgroup_free_memory(root.path()), Bytes(3000));
}

TEST(Cgroup, PagesOfFilesAreFree) {
  FakeRoot root("0::/\n");
  root.file("sys/fs/cgroup/memory.max", "10000\n")
      .file("sys/fs/cgroup/memory.current", "9000\n")
      .file("sys/fs/cgroup/memory.stat", "anon 1500\ninactive_file 6000\nactive_file 1000\n");
  EXPECT_EQ(cgroup_free_memory(root.path()), Bytes(8000));
}

TEST(Cgroup, VersionOneHasATreeForEachController) {
  FakeRoot root("5:cpu,cpuacct:/docker/1f2e\n4:memory:/docker/1f2e\n0::/\n");
  const std::string cpu = "sys/fs/cgroup/cpu,cpuacct/docker/1f2e/",
                    memory = "sys/fs/cgroup/memory/docker/1f2e/";
  root.file(cpu + "cpu.cfs_quota_us", "250000\n")
      .file(cpu + "cpu.cfs_period_us", "100000\n")
      .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
      .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
      .file(memory + "memory.limit_in_bytes", "8000\n")
      .file(memory + "memory.usage_in_bytes", "5000\n")
      .file(memory + "memory.stat", "inactive_file 1\ntotal_inactive_file 2000\n")
      .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
      .file("sys/fs/cgroup/memory/memory.usage_in_bytes", "77\n");
  EXPECT_EQ(cgroup_cores(root.path()), 2.5);
  EXPECT_EQ(cgroup_free_memory(root.path()), Bytes(5000));
}

// The path is that of the host, and the container sees its own group as the whole tree.
TEST(Cgroup, APathFromOutsideTheContainerIsTheMountItself) {
  FakeRoot root("1:cpu:/kubepods/pod7\n2:memory:/kubepods/pod7\n");
  root.file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n")
      .file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
      .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "6000\n")
      .file("sys/fs/cgroup/memory/memory.usage_in_bytes", "7000\n");
  EXPECT_EQ(cgroup_cores(root.path()), 1.0);
  EXPECT_EQ(cgroup_free_memory(root.path()), Bytes(0)) << "over its limit, and not negative";
}

TEST(Cgroup, DamageIsNoLimit) {
  FakeRoot root("nonsense\n0::/\n::\n");
  root.file("sys/fs/cgroup/cpu.max", "many\n").file("sys/fs/cgroup/memory.max", "\n");
  EXPECT_FALSE(cgroup_cores(root.path()));
  EXPECT_FALSE(cgroup_free_memory(root.path()));
}

}  // namespace
}  // namespace brrr
