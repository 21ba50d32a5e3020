// The words of a text, window by window, so that the list of their ends stays in the cache.
#pragma once

#include <algorithm>
#include <string_view>

#include "brrr/base/error.h"
#include "brrr/text/splitter.h"

namespace brrr::text {

// Calls visit(word) for every word of `text`; returns how many bytes they have, all of the text's unless
// more follows.
template <typename Visit>
size_t for_each_word(const Splitter& splitter, std::string_view text, TextEnd end,
                     const Visit& visit) {
  constexpr size_t kWindowBytes = 32 * 1024;
  constexpr size_t kMaxWindowBytes = size_t{1} << 30;
  size_t place = 0, window = kWindowBytes;
  while (place < text.size()) {
    const std::string_view part = text.substr(place, window);
    const bool is_rest = place + part.size() == text.size();
    const auto ends = splitter.split(part, is_rest ? end : TextEnd::later);
    size_t begin = 0;
    for (size_t word_end : ends) {
      visit(part.substr(begin, word_end - begin));
      begin = word_end;
    }
    place += begin;
    if (begin == 0 && is_rest) break;  // one word, or part of it, that goes on
    // A word longer than the window: look at more of it.
    window = begin == 0 ? 2 * window : kWindowBytes;
    check(window <= kMaxWindowBytes, "a text has more than ", kMaxWindowBytes / 2,
          " bytes without the end of a word; cut it into documents");
  }
  return place;
}

}  // namespace brrr::text
