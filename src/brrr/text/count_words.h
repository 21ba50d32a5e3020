// How often each word stands in some text: all that BPE training needs to know of it. Threads count
// into tables of their own, and sums do not depend on who counted what.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/text/pieces.h"
#include "brrr/text/splitter.h"
#include "brrr/text/word_map.h"

namespace brrr::text {

class WordCounter {
 public:
  // A document ends where one of the texts in `boundaries` stands, which is itself not counted.
  WordCounter(const std::string& pattern, std::span<const std::string> boundaries);

  // Words never reach from one document into the next.
  void add_documents(std::span<const std::string_view> documents);
  // A part of a longer text; returns how many bytes of it were counted (see stream.h).
  size_t add_part(std::string_view text, TextEnd end);

  // All counts, in no order. Words longer than kMaxWordBytes come in pieces of that size: a run without
  // a break teaches nothing, and every merge would have to walk over all of it.
  static constexpr size_t kMaxWordBytes = 1024;
  WordMap<int64_t> take_counts();

 private:
  size_t count(const std::vector<Piece>& pieces);  // bytes taken of the last one

  std::unique_ptr<Splitter> splitter_;
  SpecialFinder boundaries_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordMap<int64_t>>> tables_;  // those that no thread has in hand
};

}  // namespace brrr::text
