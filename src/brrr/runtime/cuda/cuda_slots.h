// The fixed addresses between which a compiled program on a GPU runs. All inputs lie in one block of device
// memory and all results in another, so that a step needs one copy each way, through pinned memory, which
// the GPU reads and writes while the host goes on. Tensors of some megabytes have no slot.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "brrr/device/cuda/runtime.h"
#include "brrr/runtime/cpu/bound_program.h"
#include "brrr/tensor/tensor.h"

namespace brrr::runtime {

class SlotBlock {
 public:
  SlotBlock(std::span<const TensorType> types, Device device, Category category);

  std::byte* data() const { return storage_ ? storage_->data() : nullptr; }
  std::byte* slot(size_t i) const;  // nullptr where tensor i has none
  bool has_slot(size_t i) const { return offsets_[i] >= 0; }
  bool holds_all() const;
  size_t offset(size_t i) const { return static_cast<size_t>(offsets_[i]); }
  size_t bytes() const { return bytes_; }

 private:
  std::vector<int64_t> offsets_;  // -1: no slot
  size_t bytes_ = 0;
  Ref<Storage> storage_;
};

// What a block for tensors of these types takes.
Bytes slot_bytes(std::span<const TensorType> types);

// Pinned memory as large as a block, and the moment from which its bytes are settled.
struct HostSlot {
  explicit HostSlot(size_t bytes) : memory(bytes) {}
  cuda::PinnedBytes memory;
  cuda::Event settled;
};

// As many as are in use at one time. One is free when nobody else holds it.
class HostSlots {
 public:
  // A free one, new if need be.
  std::shared_ptr<HostSlot> take(size_t bytes);
  // The one used longest ago of `count`, when the GPU is done with it.
  HostSlot& next(size_t bytes, size_t count);

 private:
  std::vector<std::shared_ptr<HostSlot>> slots_;
  size_t turn_ = 0;
};

// Times of copies between host and device, by events around each; nothing waits before `finish`.
class CopyClock {
 public:
  explicit CopyClock(cuda::Stream stream) : stream_(stream) {}
  void time(const HostCopy& copy, const std::function<void()>& enqueue);
  std::vector<HostCopy> finish();

 private:
  struct Timed {
    HostCopy copy;
    cuda::Event begin, end;
  };
  cuda::Stream stream_;
  std::vector<Timed> all_;
};

// Results of a run that the device may still be working on. The host goes on in the meantime.
class PendingResults {
 public:
  PendingResults() = default;
  explicit PendingResults(Tensors there_already) : results_(std::move(there_already)) {}
  // Tensors that have a slot in `block` come from there; the others are in `results`, on the device.
  PendingResults(Tensors results, const SlotBlock& block, std::shared_ptr<HostSlot> slot);

  bool is_done() const { return !slot_ || slot_->settled.is_done(); }
  // Waits. On the cpu.
  Tensors take();

 private:
  Tensors results_;
  const SlotBlock* block_ = nullptr;
  std::shared_ptr<HostSlot> slot_;
};

}  // namespace brrr::runtime
