// One word: the same ids from the array, the heap, and the definition.
#include "brrr/text/merger.h"

#include <gtest/gtest.h>

#include <map>

#include "brrr/text/train_bpe.h"
#include "text/random_text.h"

namespace brrr::text {
namespace {

// While any pair can be merged: the one of lowest rank, the leftmost of equals.
std::vector<int32_t> merge_slowly(const TokenizerDefinition& definition, std::string_view word) {
  std::map<std::string, int32_t> ids;
  for (size_t id = 0; id < definition.tokens.size(); ++id)
    ids[definition.tokens[id]] = static_cast<int32_t>(id);
  std::map<std::pair<int32_t, int32_t>, size_t> ranks;
  for (size_t rank = 0; rank < definition.merges.size(); ++rank)
    ranks[{definition.merges[rank].left, definition.merges[rank].right}] = rank;
  const auto bytes = [&](int32_t id) { return definition.tokens[static_cast<size_t>(id)]; };
  const auto rank_of = [&](int32_t left, int32_t right) -> size_t {
    if (definition.rule == MergeRule::by_id) {
      const auto found = ids.find(bytes(left) + bytes(right));
      return found == ids.end() ? SIZE_MAX : static_cast<size_t>(found->second);
    }
    const auto found = ranks.find({left, right});
    return found == ranks.end() ? SIZE_MAX : found->second;
  };
  std::vector<int32_t> parts;
  for (char byte : word) parts.push_back(ids[std::string(1, byte)]);
  for (;;) {
    size_t best = SIZE_MAX, place = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const size_t rank = rank_of(parts[i], parts[i + 1]);
      if (rank < best) best = rank, place = i;
    }
    if (best == SIZE_MAX) return parts;
    parts[place] = ids[bytes(parts[place]) + bytes(parts[place + 1])];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

TEST(Merger, MergesByTheDefinition) {
  RandomText random(11);
  std::string text;
  for (int k = 0; k < 4000; ++k) text += random.below(9) == 0 ? ' ' : "abc"[random.below(3)];
  const std::vector<std::string_view> documents{text};
  TokenizerDefinition definition = train_bpe(documents, {.vocab_size = 400});
  // Tokens that no merge of the list makes, and a rank order of its own.
  TokenizerDefinition by_id = definition;
  by_id.rule = MergeRule::by_id;
  by_id.merges.clear();
  std::swap(by_id.tokens[260], by_id.tokens[300]);
  for (const TokenizerDefinition& each : {definition, by_id}) {
    const TokenIndex index(each.tokens);
    const Merger merger(each, index);
    for (int i = 0; i < 600; ++i) {
      std::string word;
      const size_t size = 1 + random.below(i % 3 == 0 ? 200 : 40);  // beyond 64 the heap works
      for (size_t k = 0; k < size; ++k) word += "aabc"[random.below(4)];
      ASSERT_EQ(merger.merge(word), merge_slowly(each, word)) << word;
    }
  }
}

TEST(Merger, AMegabyteWithoutASpaceIsNoTrouble) {
  const std::vector<std::string_view> documents{"aaaaaaaaaaaaaaaa aaaaaaaaaaaaaaaa"};
  const TokenizerDefinition definition = train_bpe(documents, {.vocab_size = 261, .min_count = 1});
  const TokenIndex index(definition.tokens);
  const std::string word(1 << 20, 'a');
  EXPECT_EQ(Merger(definition, index).merge(word).size(), word.size() / 16);
}

}  // namespace
}  // namespace brrr::text
