// A hash map from pairs of token ids to small values: open addressing in one array, since BPE asks for
// pairs several times a byte. Nothing is ever removed.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "brrr/text/hash.h"

namespace brrr::text {

// Pairs in the order of their left, then their right id.
constexpr uint64_t pair_key(uint32_t left, uint32_t right) {
  return static_cast<uint64_t>(left) << 32 | right;
}

template <typename Value>
class PairMap {
 public:
  explicit PairMap(size_t expected = 0)
      : slots_(std::bit_ceil(2 * expected + 16)), mask_(slots_.size() - 1) {}

  size_t size() const { return size_; }

  const Value* find(uint64_t key) const {
    const Slot& slot = slots_[place_of(key)];
    return slot.key == key ? &slot.value : nullptr;
  }
  Value* find(uint64_t key) {
    Slot& slot = slots_[place_of(key)];
    return slot.key == key ? &slot.value : nullptr;
  }

  // The value of the key, with `fresh` put in where there was none.
  Value& find_or_add(uint64_t key, const Value& fresh) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place_of(key)];
    if (slot.key != key) {
      slot = {key, fresh};
      ++size_;
    }
    return slot.value;
  }

 private:
  static constexpr uint64_t kNoKey = UINT64_MAX;  // ids are below 2^31
  struct Slot {
    uint64_t key = kNoKey;
    Value value{};
  };

  // Where the key is, or where it would go.
  size_t place_of(uint64_t key) const {
    size_t place = mix(key, 0) & mask_;
    while (slots_[place].key != key && slots_[place].key != kNoKey) place = (place + 1) & mask_;
    return place;
  }

  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.key != kNoKey) slots_[place_of(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t mask_;
  size_t size_ = 0;
};

}  // namespace brrr::text
