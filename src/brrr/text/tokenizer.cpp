#include "brrr/text/tokenizer.h"

#include <algorithm>

#include "brrr/base/error.h"
#include "brrr/base/thread_pool.h"
#include "brrr/text/pieces.h"

namespace brrr::text {

Tokenizer::Tokenizer(TokenizerDefinition definition)
    : definition_(std::move(definition)),
      special_finder_(definition_.specials),
      no_specials_({}),
      bytes_(definition_.tokens),
      end_of_text_(find_end_of_text(definition_)),
      hash_(hash_of(definition_)) {
  bytes_.resize(static_cast<size_t>(text::vocab_size(definition_)));
  for (const SpecialToken& special : definition_.specials)
    bytes_[static_cast<size_t>(special.id)] = special.text;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, Specials specials) const {
  return encode_part(text, TextEnd::here, specials).ids;
}

EncodedPart Tokenizer::encode_part(std::string_view text, TextEnd end, Specials specials) const {
  const SpecialFinder& finder = specials == Specials::as_tokens ? special_finder_ : no_specials_;
  const std::vector<Piece> pieces = cut_into_pieces(
      text, end, finder, [&](std::string_view part, size_t from) { return find_cut(part, from); });
  const std::vector<size_t> groups = group_pieces(pieces);
  std::vector<EncodedPart> parts(groups.size() - 1);
  thread_pool().for_each_piece(static_cast<int64_t>(parts.size()), [&](int64_t number) {
    const auto group = static_cast<size_t>(number);
    EncodedPart& part = parts[group];
    for (size_t i = groups[group]; i < groups[group + 1]; ++i) {
      part.bytes = append_ids(pieces[i].text, pieces[i].end, part.ids);
      if (pieces[i].special >= 0) part.ids.push_back(pieces[i].special);
    }
  });
  // The last piece alone may be taken in part.
  EncodedPart result{std::move(parts[0].ids), parts.back().bytes};
  result.bytes += static_cast<size_t>(pieces.back().text.data() - text.data());
  size_t count = result.ids.size();
  for (size_t i = 1; i < parts.size(); ++i) count += parts[i].ids.size();
  result.ids.reserve(count);
  for (size_t i = 1; i < parts.size(); ++i)
    result.ids.insert(result.ids.end(), parts[i].ids.begin(), parts[i].ids.end());
  return result;
}

std::string_view Tokenizer::bytes_of(int32_t id) const {
  check(id >= 0 && id < vocab_size() && !bytes_[static_cast<size_t>(id)].empty(), "the id ", id,
        " stands for nothing; this tokenizer has ids from 0 to ", vocab_size() - 1,
        ": do the ids come from another one?");
  return bytes_[static_cast<size_t>(id)];
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (int32_t id : ids) text += bytes_of(id);
  return text;
}

namespace {

std::string pattern_words(const std::string& pattern) {
  if (pattern == kGpt2Pattern) return "GPT-2's pattern";
  if (pattern == kCl100kPattern) return "cl100k's pattern";
  return join_text("the pattern ", pattern);
}

std::string rule_words(const TokenizerDefinition& definition) {
  if (definition.rule == MergeRule::by_id) return "merges by rank";
  return join_text(definition.merges.size(), " merges");
}

}  // namespace

std::string Tokenizer::description() const {
  std::string words;
  switch (definition_.kind) {
    case TokenizerKind::bytes: words = join_text("bytes, ", vocab_size(), " ids"); break;
    case TokenizerKind::characters: words = join_text("characters, ", vocab_size(), " ids"); break;
    case TokenizerKind::bpe:
      words = join_text("byte-level BPE, ", vocab_size(), " ids, ", rule_words(definition_), ", ",
                        pattern_words(definition_.pattern));
  }
  const size_t specials = definition_.specials.size();
  if (specials > 0)
    words += join_text(", ", specials, specials == 1 ? " special token" : " special tokens");
  return words;
}

}  // namespace brrr::text
