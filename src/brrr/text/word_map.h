// A hash map from words to small values. Words of up to 15 bytes, nearly all of any text, are kept in
// the slots themselves, so that a look-up is one access to memory and two comparisons.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "brrr/text/hash.h"

namespace brrr::text {

// The bytes of a short word and, in the highest byte of `high`, their number: equal keys are equal words.
struct WordKey {
  static constexpr size_t kMaxBytes = 15;
  uint64_t low = 0, high = 0;

  explicit WordKey(std::string_view word) {
    static_assert(std::endian::native == std::endian::little);
    const char* bytes = word.data();
    const size_t size = word.size();
    high = static_cast<uint64_t>(size) << 56;
    if (size >= 8) {  // the last 8 bytes, less those that `low` has
      low = load<uint64_t>(bytes);
      if (size > 8) high |= load<uint64_t>(bytes + size - 8) >> (8 * (16 - size));
    } else if (size >= 4) {
      const uint64_t last = load<uint32_t>(bytes + size - 4);
      low = load<uint32_t>(bytes) | (last >> (8 * (8 - size))) << 32;
    } else {
      for (size_t i = 0; i < size; ++i) low |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
    }
  }
  WordKey() = default;
  bool operator==(const WordKey&) const = default;

  bool is_empty() const { return high == 0; }
  std::string word() const {
    char bytes[16];
    std::memcpy(bytes, &low, 8);
    std::memcpy(bytes + 8, &high, 8);
    return {bytes, high >> 56};
  }

 private:
  template <typename Number>
  static Number load(const char* bytes) {
    Number number;
    std::memcpy(&number, bytes, sizeof(number));
    return number;
  }
};

template <typename Value>
class WordMap {
 public:
  WordMap() : slots_(kFewestSlots) {}

  size_t size() const { return short_words_ + long_words_.size(); }

  // The word is not empty. The pointer holds until the next add.
  Value* find(std::string_view word) {
    if (word.size() > WordKey::kMaxBytes) {
      const auto found = long_words_.find(word);
      return found == long_words_.end() ? nullptr : &found->second;
    }
    const WordKey key(word);
    Slot& slot = slots_[place_of(key)];
    return slot.key == key ? &slot.value : nullptr;
  }

  // A fresh value for the word, or the one that is there.
  Value& find_or_add(std::string_view word) {
    if (word.size() > WordKey::kMaxBytes) {
      const auto found = long_words_.find(word);
      return found != long_words_.end() ? found->second : long_words_[std::string(word)];
    }
    const WordKey key(word);
    Slot* slot = &slots_[place_of(key)];
    if (slot->key == key) return slot->value;
    if (2 * (short_words_ + 1) > slots_.size()) {
      grow();
      slot = &slots_[place_of(key)];
    }
    ++short_words_;
    slot->key = key;
    return slot->value;
  }

  void clear() { *this = WordMap(); }

  template <typename Visit>  // visit(std::string_view word, const Value&), in no order
  void for_each(const Visit& visit) const {
    for (const Slot& slot : slots_) {
      if (!slot.key.is_empty()) visit(std::string_view(slot.key.word()), slot.value);
    }
    for (const auto& [word, value] : long_words_) visit(std::string_view(word), value);
  }

 private:
  static constexpr size_t kFewestSlots = 1 << 12;
  struct Slot {
    WordKey key;
    Value value{};
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return quick_hash(word); }
  };

  size_t place_of(const WordKey& key) const {
    const size_t mask = slots_.size() - 1;
    size_t place = mix(key.low, key.high) & mask;
    while (!(slots_[place].key == key) && !slots_[place].key.is_empty()) place = (place + 1) & mask;
    return place;
  }

  void grow() {
    std::vector<Slot> old(4 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (!slot.key.is_empty()) slots_[place_of(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t short_words_ = 0;
  std::unordered_map<std::string, Value, Hash, std::equal_to<>> long_words_;
};

}  // namespace brrr::text
