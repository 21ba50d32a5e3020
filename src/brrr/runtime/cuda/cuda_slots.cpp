#include "brrr/runtime/cuda/cuda_slots.h"

#include <algorithm>
#include <cstring>

#include "brrr/ops/create/copy.h"

namespace brrr::runtime {
namespace {

constexpr int64_t kLargestSlot =
    int64_t{4} << 20;                // a copy this large costs as much as its program's launches
constexpr int64_t kAlignment = 256;  // of addresses that kernels load 16 bytes from

int64_t bytes_of(const TensorType& type) { return storage_bytes(type.dtype, numel(type.shape)); }

struct SlotLayout {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};

SlotLayout layout_of(std::span<const TensorType> types) {
  SlotLayout layout;
  for (const TensorType& type : types) {
    const bool fits = bytes_of(type) <= kLargestSlot;
    layout.offsets.push_back(fits ? layout.bytes : -1);
    if (fits)
      layout.bytes +=
          std::max<int64_t>((bytes_of(type) + kAlignment - 1) / kAlignment, 1) * kAlignment;
  }
  return layout;
}

}  // namespace

Bytes slot_bytes(std::span<const TensorType> types) { return Bytes(layout_of(types).bytes); }

SlotBlock::SlotBlock(std::span<const TensorType> types, Device device, Category category) {
  SlotLayout layout = layout_of(types);
  offsets_ = std::move(layout.offsets);
  bytes_ = static_cast<size_t>(layout.bytes);
  if (bytes_ > 0) storage_ = Storage::allocate(device, layout.bytes, category);
}

std::byte* SlotBlock::slot(size_t i) const { return has_slot(i) ? data() + offsets_[i] : nullptr; }

bool SlotBlock::holds_all() const {
  return std::all_of(offsets_.begin(), offsets_.end(), [](int64_t at) { return at >= 0; });
}

std::shared_ptr<HostSlot> HostSlots::take(size_t bytes) {
  for (const std::shared_ptr<HostSlot>& slot : slots_) {
    if (slot.use_count() == 1) return slot;
  }
  return slots_.emplace_back(std::make_shared<HostSlot>(bytes));
}

HostSlot& HostSlots::next(size_t bytes, size_t count) {
  if (slots_.size() < count) return *slots_.emplace_back(std::make_shared<HostSlot>(bytes));
  HostSlot& slot = *slots_[turn_];
  turn_ = (turn_ + 1) % count;
  slot.settled.wait();
  return slot;
}

void CopyClock::time(const HostCopy& copy, const std::function<void()>& enqueue) {
  Timed& timed = all_.emplace_back();
  timed.copy = copy;
  timed.begin.record(stream_);
  enqueue();
  timed.end.record(stream_);
}

std::vector<HostCopy> CopyClock::finish() {
  std::vector<HostCopy> copies;
  for (Timed& timed : all_) {
    timed.end.wait();
    timed.copy.seconds = cuda::seconds_between(timed.begin, timed.end);
    copies.push_back(timed.copy);
  }
  all_.clear();
  return copies;
}

PendingResults::PendingResults(Tensors results, const SlotBlock& block,
                               std::shared_ptr<HostSlot> slot)
    : results_(std::move(results)), block_(&block), slot_(std::move(slot)) {}

Tensors PendingResults::take() {
  NoGrad nothing_is_recorded;
  Tensors taken;
  if (slot_) slot_->settled.wait();
  for (int i = 0; i < results_.size(); ++i) {
    const Tensor& x = results_[i];
    const auto index = static_cast<size_t>(i);
    if (!block_ || !block_->has_slot(index)) {
      taken.push_back(to(x, Device::cpu()));
      continue;
    }
    taken.push_back(empty(x.shape(), x.dtype(), Device::cpu()));
    std::memcpy(taken[i].storage().data(), slot_->memory.data() + block_->offset(index),
                static_cast<size_t>(storage_bytes(x.dtype(), x.numel())));
  }
  *this = {};
  return taken;
}

}  // namespace brrr::runtime
