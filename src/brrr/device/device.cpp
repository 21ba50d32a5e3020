#include "brrr/device/device.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include "brrr/base/error.h"
#include "brrr/base/units.h"
#include "brrr/device/cpu_blocks.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/device/ledger.h"

namespace brrr {
namespace {

constexpr size_t kAlignment = 64;  // a cache line, and the widest vector register

size_t physical_bytes() {
  static const size_t bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  return bytes;
}

[[noreturn]] void fail_out_of_memory(size_t bytes) {
  const Bytes live = ledger(Device::cpu()).live();
  fail("out of memory: asked for ", Bytes(static_cast<int64_t>(bytes)),
       " on the cpu, where tensors hold ", live, " of ",
       Bytes(static_cast<int64_t>(physical_bytes())),
       " already; use smaller sizes, or plan them first on the null device");
}

// The sanitizer sees what malloc gives out, and watches its borders; kept blocks would escape it.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeepBlocks = false;
#else
constexpr bool kKeepBlocks = true;
#endif

// The word before the address handed out says where the memory came from: the address that malloc
// returned, or, with the lowest bit set, the size of a large block.
uintptr_t& origin_of(void* memory) { return static_cast<uintptr_t*>(memory)[-1]; }

void* allocate_large(size_t bytes) {
  const size_t size = (bytes + kAlignment + 1) & ~size_t{1};
  auto* block = static_cast<std::byte*>(take_block(size));
  if (!block) return nullptr;
  void* memory = block + kAlignment;
  origin_of(memory) = size | 1;
  return memory;
}

// malloc and a shift by hand: malloc keeps small blocks in a per-thread cache, aligned_alloc does not.
void* allocate_aligned(size_t bytes) {
  if (kKeepBlocks && bytes >= kLargeBlockBytes) return allocate_large(bytes);
  void* block = std::malloc(bytes + kAlignment + sizeof(void*));
  if (!block) return nullptr;
  const auto first = reinterpret_cast<uintptr_t>(block) + sizeof(void*);
  auto* memory = reinterpret_cast<void*>((first + kAlignment - 1) & ~(kAlignment - 1));
  origin_of(memory) = reinterpret_cast<uintptr_t>(block);
  return memory;
}

}  // namespace

std::string to_text(Device device) {
  switch (device.kind) {
    case DeviceKind::cpu: return "cpu";
    case DeviceKind::null: return "null";
    case DeviceKind::cuda: return "cuda:" + std::to_string(device.index);
  }
  fail("unknown device kind ", static_cast<int>(device.kind));
}

Device parse_device(std::string_view text) {
  if (text == "cpu") return Device::cpu();
  if (text == "null") return Device::null();
  if (text == "cuda") return Device::cuda(0);
  if (text.starts_with("cuda:")) {
    const std::string_view digits = text.substr(5);
    int index = -1;
    const auto [end, status] = std::from_chars(digits.begin(), digits.end(), index);
    const bool known = index >= 0 && index < kMaxCudaDevices;
    if (status == std::errc() && end == digits.end() && known) return Device::cuda(index);
  }
  fail("unknown device \"", text, "\"; use cpu, null or cuda:0 to cuda:", kMaxCudaDevices - 1);
}

Device Device::cuda(int index) {
  check(index >= 0 && index < kMaxCudaDevices, "cuda:", index,
        " is not a device; brrr knows cuda:0 to cuda:", kMaxCudaDevices - 1);
  return {.kind = DeviceKind::cuda, .index = static_cast<uint8_t>(index)};
}

void* allocate(Device device, size_t bytes) {
  if (device.kind == DeviceKind::null) return nullptr;
  if (device.kind == DeviceKind::cuda) {
    check(cuda::is_built(), "device ", device, " cannot hold tensors: this build has no CUDA; ",
          "configure with -DBRRR_CUDA=ON, or use Device::cpu()");
    return cuda::allocate_bytes(device.index, bytes);
  }
  if (bytes > physical_bytes()) fail_out_of_memory(bytes);
  void* memory = allocate_aligned(bytes);
  if (!memory) fail_out_of_memory(bytes);
  return memory;
}

void release(Device device, void* memory) noexcept {
  if (device.kind == DeviceKind::cuda) return cuda::release_bytes(device.index, memory);
  if (device.kind != DeviceKind::cpu || !memory) return;
  const uintptr_t origin = origin_of(memory);
  if ((origin & 1) != 0) {
    return_block(static_cast<std::byte*>(memory) - kAlignment, origin & ~uintptr_t{1});
  } else {
    std::free(reinterpret_cast<void*>(origin));
  }
}

}  // namespace brrr
