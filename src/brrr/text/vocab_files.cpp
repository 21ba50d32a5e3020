// vocab.json (byte-level text to id) and merges.txt (a pair a line, earliest first), as GPT-2 has them.
// They say nothing of special tokens: those are what is neither a byte nor made by a merge.
#include "brrr/base/error.h"
#include "brrr/text/byte_level.h"
#include "brrr/text/merge_list.h"
#include "brrr/text/token_index.h"
#include "brrr/text/tokenizer_file.h"

namespace brrr::text {
namespace {

MergeTexts read_merge_lines(std::string_view text, const std::string& name) {
  MergeTexts merges;
  bool first = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool is_header = first && line.starts_with("#version");
    first = false;
    if (!line.empty() && !is_header) merges.push_back(parse_merge(line, name));
  }
  return merges;
}

// The ids that are bytes or made by merges.
std::vector<bool> ordinary_ids(const TokenizerDefinition& definition) {
  const TokenIndex index(definition.tokens);
  std::vector<bool> ordinary(definition.tokens.size());
  for (int32_t id : index.byte_ids()) {
    if (id != TokenIndex::kNone) ordinary[static_cast<size_t>(id)] = true;
  }
  for (const auto& [left, right] : definition.merges) {
    const std::string whole = definition.tokens[static_cast<size_t>(left)] +
                              definition.tokens[static_cast<size_t>(right)];
    const int32_t id = index.find(whole);
    if (id != TokenIndex::kNone) ordinary[static_cast<size_t>(id)] = true;
  }
  return ordinary;
}

}  // namespace

TokenizerDefinition parse_vocab_files(const VocabFiles& files, const std::string& pattern,
                                      const std::string& name) {
  const IdList entries = read_ids(parse_json(files.vocab_json, name), name);
  IdList tokens, literal;  // what is no byte-level text must be a special token
  for (const auto& [text, id] : entries) {
    const auto bytes = from_byte_level(text);
    (bytes ? tokens : literal).emplace_back(bytes ? *bytes : text, id);
  }
  const std::vector<std::string> texts = tokens_by_id(entries, name);
  TokenizerDefinition definition{.kind = TokenizerKind::bpe};
  definition.pattern = pattern.empty() ? std::string(kGpt2Pattern) : pattern;
  definition.tokens = tokens_by_id(tokens, name);
  set_merges(definition, read_merge_lines(files.merges_txt, name), name);
  std::vector<bool> ordinary = ordinary_ids(definition);
  ordinary.resize(texts.size());
  for (size_t id = 0; id < texts.size(); ++id) {
    if (ordinary[id] || texts[id].empty()) continue;
    definition.specials.push_back({texts[id], static_cast<int32_t>(id)});
    if (id < definition.tokens.size()) definition.tokens[id].clear();
  }
  while (!definition.tokens.empty() && definition.tokens.back().empty())
    definition.tokens.pop_back();
  return definition;
}

VocabFiles to_vocab_files(const TokenizerDefinition& given) {
  check(given.kind == TokenizerKind::bpe, "a ", kind_name(given.kind),
        " tokenizer does not fit vocab.json and merges.txt; save it in brrr's form");
  check(
      given.pattern == kGpt2Pattern,
      "vocab.json and merges.txt mean GPT-2's pattern, and this tokenizer has another; save it as "
      "tokenizer.json or in brrr's form");
  const TokenizerDefinition definition = with_merge_list(given);
  check(
      !definition.whole_words_first || every_token_makes_itself(definition),
      "vocab.json and merges.txt cannot say that whole words go before merges; save the tokenizer "
      "as tokenizer.json or in brrr's form");
  std::string merges = "#version: 0.2\n";
  for (const auto& [left, right] : merge_texts(definition))
    merges += join_text(left, " ", right, "\n");
  return {ids_to_json(vocabulary_texts(definition)) + "\n", merges};
}

}  // namespace brrr::text
