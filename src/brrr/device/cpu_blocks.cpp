#include "brrr/device/cpu_blocks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <map>
#include <mutex>
#include <vector>

namespace brrr {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

// Sizes are rounded up to eighths of a power of two, so that nearly equal tensors share blocks; at most
// 1/8 is address space without use, and pages never touched are never resident.
size_t block_size(size_t bytes) {
  const size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

void* map_block(size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// mmap aligns to pages of 4 KiB; a huge page must start at a multiple of its size.
void* map_huge_block(size_t size) {
  auto* memory = static_cast<std::byte*>(map_block(size + kHugePage));
  if (!memory) return nullptr;
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(memory) % kHugePage) % kHugePage;
  if (before > 0) munmap(memory, before);
  munmap(memory + before + size, kHugePage - before);
  madvise(memory + before, size, MADV_HUGEPAGE);  // a wish: refusal costs speed only
  return memory + before;
}

class BlockCache {
 public:
  void* take(size_t size) {
    {
      std::lock_guard lock(mutex_);
      std::vector<void*>& blocks = kept_[size];
      if (!blocks.empty()) {
        void* block = blocks.back();  // the one used last: what is left in the caches is in it
        blocks.pop_back();
        kept_bytes_ -= size;
        return block;
      }
    }
    if (void* block = map(size)) return block;
    release_all();  // what is kept in other sizes may be what is missing
    return map(size);
  }

  void put(void* block, size_t size) noexcept {
    std::lock_guard lock(mutex_);
    if (kept_bytes_ + size > limit_) {
      munmap(block, size);
      return;
    }
    try {
      kept_[size].push_back(block);
      kept_bytes_ += size;
    } catch (...) {  // no memory for the list itself
      munmap(block, size);
    }
  }

  void release_all() {
    std::lock_guard lock(mutex_);
    for (auto& [size, blocks] : kept_) {
      for (void* block : blocks) munmap(block, size);
      blocks.clear();
    }
    kept_bytes_ = 0;
  }

  size_t kept_bytes() {
    std::lock_guard lock(mutex_);
    return kept_bytes_;
  }

 private:
  static void* map(size_t size) {
    return size < kHugePage ? map_block(size) : map_huge_block(size);
  }

  std::mutex mutex_;
  std::map<size_t, std::vector<void*>> kept_;  // by size
  size_t kept_bytes_ = 0;
  // A quarter of the machine at most is held without use.
  size_t limit_ = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
                  static_cast<size_t>(sysconf(_SC_PAGE_SIZE)) / 4;
};

// Never destroyed: tensors in static variables may be freed after it.
BlockCache& cache() {
  static auto* blocks = new BlockCache;
  return *blocks;
}

}  // namespace

void* take_block(size_t bytes) { return cache().take(block_size(bytes)); }
void return_block(void* block, size_t bytes) noexcept { cache().put(block, block_size(bytes)); }
int64_t kept_block_bytes() { return static_cast<int64_t>(cache().kept_bytes()); }
void release_kept_blocks() { cache().release_all(); }

}  // namespace brrr
