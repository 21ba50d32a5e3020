#include "brrr/tensor/storage.h"

#include <new>

namespace brrr {
namespace {

// On the CPU header and bytes share one block, so a tensor costs two allocations in all.
constexpr size_t kHeaderBytes = (sizeof(Storage) + 63) / 64 * 64;

}  // namespace

Storage::Storage(Device device, std::byte* data, int64_t bytes, Category category, bool owned)
    : data_(data), bytes_(bytes), device_(device), category_(category), owned_(owned) {
  if (owned_) ledger(device_).add(category_, bytes_);
}

Storage::~Storage() {
  if (owned_) ledger(device_).add(category_, -bytes_);
}

Ref<Storage> Storage::allocate(Device device, int64_t bytes, Category category) {
  if (device.kind == DeviceKind::cpu) {
    auto* block =
        static_cast<std::byte*>(brrr::allocate(device, kHeaderBytes + static_cast<size_t>(bytes)));
    return Ref<Storage>::adopt(new (block)
                                   Storage(device, block + kHeaderBytes, bytes, category, true));
  }
  // The device first: it is the one that may refuse, and then no header must be left behind.
  auto* data = static_cast<std::byte*>(brrr::allocate(device, static_cast<size_t>(bytes)));
  auto* block = static_cast<std::byte*>(brrr::allocate(Device::cpu(), kHeaderBytes));
  return Ref<Storage>::adopt(new (block) Storage(device, data, bytes, category, true));
}

Ref<Storage> Storage::borrow(void* memory, int64_t bytes) {
  auto* block = static_cast<std::byte*>(brrr::allocate(Device::cpu(), kHeaderBytes));
  return Ref<Storage>::adopt(new (block) Storage(Device::cpu(), static_cast<std::byte*>(memory),
                                                 bytes, Category::data, false));
}

Ref<Storage> Storage::traced(Device device, int64_t bytes) {
  auto* block = static_cast<std::byte*>(brrr::allocate(Device::cpu(), kHeaderBytes));
  auto* storage = new (block) Storage(device, nullptr, bytes, Category::activation, false);
  storage->traced_ = true;
  return Ref<Storage>::adopt(storage);
}

void Storage::destroy() const {
  auto* self = const_cast<Storage*>(this);
  if (owned_ && device_.is_accelerator()) brrr::release(device_, data_);
  self->~Storage();
  brrr::release(Device::cpu(), self);
}

void Storage::set_category(Category category) {
  if (owned_) ledger(device_).move(category_, category, bytes_);
  category_ = category;
}

}  // namespace brrr
