// What a run may use is what the process is allowed, not what the machine has.
#include "brrr/train/machine.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "support/sanitized.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

TEST(Machine, MemoryIsBoundedByTheAddressSpace) {
  if (kIsSanitized) GTEST_SKIP() << "sanitizers reserve all of the address space";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const int64_t used = pages * sysconf(_SC_PAGESIZE), room = (100_MiB).value();
  const rlimit narrow{.rlim_cur = static_cast<rlim_t>(used + room), .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &narrow), 0);
  const Bytes free = training::available_memory();
  setrlimit(RLIMIT_AS, &before);
  EXPECT_LE(free, Bytes(room) + 1_MiB);  // reading the file above took some, and gave it back
  EXPECT_GT(free, Bytes(room / 2));
}

TEST(Machine, DiskIsThatOfTheFirstFolderThatIsThere) {
  const TempFolder folder;
  EXPECT_GT(training::available_disk(folder.path()), 0_B);
  EXPECT_EQ(training::available_disk(folder / "not/there/yet") > 0_B, true);
}

}  // namespace
}  // namespace brrr
