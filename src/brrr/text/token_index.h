// From the bytes of a token to its id.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/text/hash.h"

namespace brrr::text {

class TokenIndex {
 public:
  // `tokens` must outlive the index. Empty ones are left out, and of equal ones the first is found.
  explicit TokenIndex(const std::vector<std::string>& tokens)
      : tokens_(tokens), slots_(std::bit_ceil(2 * tokens.size() + 16), kNone) {
    for (size_t id = 0; id < tokens.size(); ++id) {
      if (tokens[id].empty()) continue;
      int32_t& slot = slots_[place_of(tokens[id])];
      if (slot == kNone) slot = static_cast<int32_t>(id);
    }
  }

  static constexpr int32_t kNone = -1;
  // The id of the token, or kNone.
  int32_t find(std::string_view bytes) const { return slots_[place_of(bytes)]; }

  // The tokens of the single bytes, kNone for those without one.
  std::array<int32_t, 256> byte_ids() const {
    std::array<int32_t, 256> ids{};
    for (size_t byte = 0; byte < ids.size(); ++byte) {
      const char value = static_cast<char>(byte);
      ids[byte] = find({&value, 1});
    }
    return ids;
  }

 private:
  size_t place_of(std::string_view bytes) const {
    const size_t mask = slots_.size() - 1;
    size_t place = quick_hash(bytes) & mask;
    while (slots_[place] != kNone && tokens_[static_cast<size_t>(slots_[place])] != bytes)
      place = (place + 1) & mask;
    return place;
  }

  const std::vector<std::string>& tokens_;
  std::vector<int32_t> slots_;
};

}  // namespace brrr::text
