// Finds the texts of special tokens in other text: the leftmost, and of those that begin there the
// longest.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "brrr/text/definition.h"

namespace brrr::text {

class SpecialFinder {
 public:
  explicit SpecialFinder(std::vector<SpecialToken> specials);

  struct Found {
    size_t begin = 0, end = 0;
    int32_t id = -1;  // -1: there is none, and begin and end are the size of the text
  };
  Found find(std::string_view text, size_t from) const;

  // Bytes at the end of a text that may be the first of a special token whose others follow.
  size_t undecided_suffix(std::string_view text) const;

 private:
  std::vector<SpecialToken> specials_;  // longest first
  std::array<bool, 256> begins_{};
};

}  // namespace brrr::text
