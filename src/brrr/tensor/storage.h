// A block of bytes on a device, shared by every tensor that is a view of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "brrr/base/ref.h"
#include "brrr/device/device.h"
#include "brrr/device/ledger.h"

namespace brrr {

class Storage final : public RefCounted {
 public:
  // New bytes, not initialised, on the books of the current category.
  static Ref<Storage> allocate(Device device, int64_t bytes,
                               Category category = current_category());
  // Bytes owned by somebody else, who must outlive every tensor over them. Not in the ledger.
  static Ref<Storage> borrow(void* memory, int64_t bytes);
  // No bytes: what a tensor inside a trace stands for (graph/trace.h). Not in the ledger.
  static Ref<Storage> traced(Device device, int64_t bytes);

  std::byte* data() const { return data_; }  // nullptr on the null device and in a trace
  bool is_traced() const { return traced_; }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  Category category() const { return category_; }
  void set_category(Category category);

  // Goes up at every write, so that a gradient can tell whether the value it kept is still the same.
  uint32_t version() const { return version_; }
  void mark_written() { ++version_; }

 private:
  Storage(Device device, std::byte* data, int64_t bytes, Category category, bool owned);
  ~Storage() override;
  void destroy() const override;

  std::byte* data_;
  int64_t bytes_;
  uint32_t version_ = 0;
  Device device_;
  Category category_;
  bool owned_;
  bool traced_ = false;
};

}  // namespace brrr
