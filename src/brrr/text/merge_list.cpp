#include "brrr/text/merge_list.h"

#include <algorithm>

#include "brrr/base/error.h"
#include "brrr/text/byte_level.h"
#include "brrr/text/merger.h"
#include "brrr/text/token_index.h"

namespace brrr::text {

void set_merges(TokenizerDefinition& definition, const MergeTexts& merges,
                const std::string& name) {
  const TokenIndex index(definition.tokens);
  const auto find = [&](const std::string& text) {
    const auto bytes = from_byte_level(text);
    const int32_t id = bytes ? index.find(*bytes) : TokenIndex::kNone;
    check(id != TokenIndex::kNone, "\"", name, "\": a merge joins \"", text,
          "\", which is not in the vocabulary");
    return id;
  };
  definition.merges.reserve(merges.size());
  for (const auto& [left, right] : merges) definition.merges.push_back({find(left), find(right)});
}

MergeTexts merge_texts(const TokenizerDefinition& definition) {
  MergeTexts texts;
  texts.reserve(definition.merges.size());
  const auto text = [&](int32_t id) {
    return to_byte_level(definition.tokens[static_cast<size_t>(id)]);
  };
  for (const auto& [left, right] : definition.merges) texts.emplace_back(text(left), text(right));
  return texts;
}

std::pair<std::string, std::string> parse_merge(std::string_view line, const std::string& name) {
  const size_t space = line.find(' ');
  const bool is_pair = space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
                       line.find(' ', space + 1) == std::string_view::npos;
  check(is_pair, "\"", name, "\": the merge \"", line.substr(0, 80),
        "\" is not two tokens with a space between");
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

IdList vocabulary_texts(const TokenizerDefinition& definition) {
  IdList ids;
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    if (!definition.tokens[id].empty())
      ids.emplace_back(to_byte_level(definition.tokens[id]), static_cast<int32_t>(id));
  }
  for (const SpecialToken& special : definition.specials)
    ids.emplace_back(special.text, special.id);
  std::sort(ids.begin(), ids.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  return ids;
}

TokenizerDefinition with_merge_list(const TokenizerDefinition& definition) {
  if (definition.rule == MergeRule::by_list) return definition;
  const TokenIndex index(definition.tokens);
  const Merger merger(definition, index);
  TokenizerDefinition result = definition;
  result.rule = MergeRule::by_list;
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    const std::string& token = definition.tokens[id];
    if (token.size() < 2) continue;
    // What the token was before the merge that made it.
    const auto halves = merger.merge(token, static_cast<uint32_t>(id));
    check(
        halves.size() == 2, "the token ", id, " (\"", to_byte_level(token),
        "\") is not made of two ",
        "others, so this tokenizer has no list of merges; save it as .tiktoken or in brrr's form");
    result.merges.push_back({halves[0], halves[1]});
  }
  return result;
}

TokenizerDefinition with_ranks(const TokenizerDefinition& definition) {
  if (definition.rule == MergeRule::by_id) return definition;
  const TokenIndex index(definition.tokens);
  TokenizerDefinition result = definition;
  result.rule = MergeRule::by_id;
  result.merges.clear();
  int32_t last = -1;
  for (size_t rank = 0; rank < definition.merges.size(); ++rank) {
    const auto [left, right] = definition.merges[rank];
    const std::string whole = definition.tokens[static_cast<size_t>(left)] +
                              definition.tokens[static_cast<size_t>(right)];
    const int32_t id = index.find(whole);
    check(id > last && id > left && id > right, "merge ", rank, " makes the id ", id,
          ", which does not follow the ids before it; ids that are no ranks cannot be saved as "
          ".tiktoken: use tokenizer.json or brrr's form");
    last = id;
  }
  check(every_token_makes_itself(definition) && every_token_makes_itself(result),
        "a token is not encoded as itself, so merges by rank would give other ids; use "
        "tokenizer.json or brrr's form");
  result.whole_words_first = true;
  return result;
}

bool every_token_makes_itself(const TokenizerDefinition& definition) {
  const TokenIndex index(definition.tokens);
  const Merger merger(definition, index);
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    if (definition.tokens[id].empty()) continue;
    const auto ids = merger.merge(definition.tokens[id]);
    if (ids.size() != 1 || ids[0] != static_cast<int32_t>(id)) return false;
  }
  return true;
}

}  // namespace brrr::text
