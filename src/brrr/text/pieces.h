// Text cut into pieces that can be worked on apart from each other, so that threads can share a text and
// a text can be read in parts. The cuts depend on the text alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "brrr/text/special_finder.h"
#include "brrr/text/splitter.h"

namespace brrr::text {

struct Piece {
  std::string_view text;        // no special tokens in it
  TextEnd end = TextEnd::here;  // `later` only for the last one of a part
  int32_t special = -1;         // the special token behind it
};

// A place at or after `from` > 0 where text may be cut, or its size: Splitter::find_cut.
using FindCut = std::function<size_t(std::string_view text, size_t from)>;

// The pieces of `text`, in order. With TextEnd::later the last one, perhaps empty, is open, and leaves
// out bytes that may begin a special token.
std::vector<Piece> cut_into_pieces(std::string_view text, TextEnd end,
                                   const SpecialFinder& specials, const FindCut& find_cut);

// Consecutive pieces that together are worth a thread's while: where each group begins, and, last, the
// number of pieces.
std::vector<size_t> group_pieces(const std::vector<Piece>& pieces);

}  // namespace brrr::text
