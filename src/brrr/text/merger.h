// Byte-pair encoding of one word: start from bytes, and merge the pair of lowest rank, the leftmost of
// equals, until no pair has one.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "brrr/text/definition.h"
#include "brrr/text/pair_map.h"
#include "brrr/text/token_index.h"

namespace brrr::text {

class Merger {
 public:
  // `definition` has passed check_definition.
  Merger(const TokenizerDefinition& definition, const TokenIndex& index);

  // The ids of a word. Short words search all pairs anew for every merge, long ones keep a heap:
  // n log n, so that a megabyte without a space takes a second and not a day. Merges stop before the
  // first one whose rank is `rank_limit` or more.
  static constexpr uint32_t kNoLimit = UINT32_MAX;
  std::vector<int32_t> merge(std::string_view word, uint32_t rank_limit = kNoLimit) const;

 private:
  // Rank in the upper half, the merged token's id in the lower: smaller merges first.
  using Ranked = uint64_t;
  static constexpr Ranked kNoMerge = UINT64_MAX;

  Ranked look_up(int32_t left, int32_t right) const {
    const Ranked* found =
        ranks_.find(pair_key(static_cast<uint32_t>(left), static_cast<uint32_t>(right)));
    return found ? *found : kNoMerge;
  }
  void add(int32_t left, int32_t right, size_t rank, int32_t merged);
  void add_every_cut(const TokenizerDefinition& definition, const TokenIndex& index);

  std::vector<int32_t> merge_short(std::string_view word, uint32_t rank_limit) const;
  std::vector<int32_t> merge_long(std::string_view word, uint32_t rank_limit) const;

  std::array<int32_t, 256> byte_ids_{};
  PairMap<Ranked> ranks_;
};

}  // namespace brrr::text
