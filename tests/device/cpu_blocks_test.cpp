#include "brrr/device/cpu_blocks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "brrr/device/device.h"

namespace brrr {
namespace {

class CpuBlocks : public testing::Test {
 protected:
  void SetUp() override { release_kept_blocks(); }
  void TearDown() override { release_kept_blocks(); }
};

TEST_F(CpuBlocks, AreReusedBySize) {
  void* first = take_block(3 << 20);
  return_block(first, 3 << 20);
  EXPECT_EQ(kept_block_bytes(), 3 << 20);
  EXPECT_EQ(take_block(3 << 20), first);
  EXPECT_EQ(kept_block_bytes(), 0);
  void* other = take_block(5 << 20);
  EXPECT_NE(other, first);
  return_block(first, 3 << 20);
  return_block(other, 5 << 20);
  release_kept_blocks();
  EXPECT_EQ(kept_block_bytes(), 0);
}

TEST_F(CpuBlocks, NearlyEqualSizesShare) {
  void* block = take_block((8 << 20) - 5);
  return_block(block, (8 << 20) - 5);
  EXPECT_EQ(take_block((8 << 20) - 4000), block);
  return_block(block, (8 << 20) - 4000);
}

TEST_F(CpuBlocks, LargeOnesStartOnHugePages) {
  void* block = take_block(9 << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % (2 << 20), 0U);
  std::memset(block, 1, 9 << 20);
  return_block(block, 9 << 20);
}

// Around the border between malloc and blocks every byte is usable and aligned.
TEST_F(CpuBlocks, AllocateAcrossTheBorder) {
  for (size_t bytes = kLargeBlockBytes - 130; bytes < kLargeBlockBytes + 130; bytes += 13) {
    void* memory = allocate(Device::cpu(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0U);
    std::memset(memory, 7, bytes);
    release(Device::cpu(), memory);
  }
}

TEST_F(CpuBlocks, ParallelUse) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        const size_t bytes = kLargeBlockBytes * static_cast<size_t>(1 + (i + t) % 3);
        auto* memory = static_cast<unsigned char*>(allocate(Device::cpu(), bytes));
        memory[0] = memory[bytes - 1] = static_cast<unsigned char>(t);
        ASSERT_EQ(memory[0], t);
        release(Device::cpu(), memory);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace brrr
