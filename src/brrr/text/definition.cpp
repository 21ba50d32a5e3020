#include "brrr/text/definition.h"

#include <algorithm>
#include <string>

#include "brrr/base/error.h"
#include "brrr/text/byte_level.h"
#include "brrr/text/hash.h"
#include "brrr/text/pair_map.h"
#include "brrr/text/token_index.h"

namespace brrr::text {
namespace {

// A file of ranks allows every way to cut a token in two, and each is looked up.
constexpr size_t kMaxRankedBytes = 512;

void check_tokens(const TokenizerDefinition& definition, const TokenIndex& index) {
  const auto& tokens = definition.tokens;
  check(static_cast<int64_t>(tokens.size()) <= kMaxIds, "a tokenizer has ", tokens.size(),
        " ids; at most ", kMaxIds, " are allowed");
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty()) continue;
    const auto first = static_cast<size_t>(index.find(tokens[id]));
    check(first == id, "the ids ", first, " and ", id, " are both \"", to_byte_level(tokens[id]),
          "\"; the bytes of a token must have one id");
    check(definition.rule != MergeRule::by_id || tokens[id].size() <= kMaxRankedBytes, "token ", id,
          " has ", tokens[id].size(), " bytes; at most ", kMaxRankedBytes,
          " are allowed where ids are ranks");
  }
}

void check_specials(const TokenizerDefinition& definition) {
  std::vector<std::string_view> texts;
  int64_t last_id = -1;
  for (const SpecialToken& special : definition.specials) {
    check(!special.text.empty(), "the special token ", special.id, " has no text");
    check(special.id >= 0 && special.id < kMaxIds, "the special token \"", special.text,
          "\" has the id ", special.id, "; ids are 0 to ", kMaxIds - 1);
    check(special.id > last_id, "the special token \"", special.text, "\" has the id ", special.id,
          ", and one before it has ", last_id, "; list them in the order of their ids, each once");
    const auto id = static_cast<size_t>(special.id);
    check(id >= definition.tokens.size() || definition.tokens[id].empty(), "the id ", id,
          " is the special token \"", special.text, "\" and an ordinary one");
    texts.push_back(special.text);
    last_id = special.id;
  }
  std::sort(texts.begin(), texts.end());
  const auto twice = std::adjacent_find(texts.begin(), texts.end());
  check(twice == texts.end(), "the special token \"", twice == texts.end() ? "" : *twice,
        "\" has two ids");
}

void check_bytes(const TokenizerDefinition& definition, const TokenIndex& index) {
  const std::array<int32_t, 256> ids = index.byte_ids();
  for (size_t byte = 0; byte < ids.size(); ++byte) {
    check(ids[byte] != TokenIndex::kNone, "the byte ", byte, " has no token; a ",
          kind_name(definition.kind),
          " tokenizer needs one for each of the 256, or some text could not be encoded");
  }
}

void check_merges(const TokenizerDefinition& definition, const TokenIndex& index) {
  const auto& tokens = definition.tokens;
  check(definition.rule == MergeRule::by_list || definition.merges.empty(),
        "where ids are ranks there is no list of merges, but this one has ",
        definition.merges.size());
  PairMap<size_t> seen(definition.merges.size());
  for (size_t rank = 0; rank < definition.merges.size(); ++rank) {
    const auto [left, right] = definition.merges[rank];
    const auto is_token = [&](int32_t id) {
      return id >= 0 && static_cast<size_t>(id) < tokens.size() &&
             !tokens[static_cast<size_t>(id)].empty();
    };
    check(is_token(left) && is_token(right), "merge ", rank, " joins the ids ", left, " and ",
          right, ", and one of them is no token");
    const std::string whole =
        tokens[static_cast<size_t>(left)] + tokens[static_cast<size_t>(right)];
    check(index.find(whole) != TokenIndex::kNone, "merge ", rank, " makes \"", to_byte_level(whole),
          "\", which is no token");
    const auto key = pair_key(static_cast<uint32_t>(left), static_cast<uint32_t>(right));
    const size_t first = seen.find_or_add(key, rank);
    check(first == rank, "the merges ", first, " and ", rank, " join the same two tokens");
  }
}

}  // namespace

std::string_view kind_name(TokenizerKind kind) {
  switch (kind) {
    case TokenizerKind::bytes: return "byte";
    case TokenizerKind::characters: return "char";
    case TokenizerKind::bpe: return "bpe";
  }
  return "unknown";
}

int64_t vocab_size(const TokenizerDefinition& definition) {
  const auto ordinary = static_cast<int64_t>(definition.tokens.size());
  const int64_t special = definition.specials.empty() ? 0 : definition.specials.back().id + 1;
  return std::max(ordinary, special);
}

std::optional<int32_t> find_end_of_text(const TokenizerDefinition& definition) {
  for (std::string_view name : {kEndOfText, std::string_view("<|end_of_text|>"),
                                std::string_view("</s>"), std::string_view("<eos>")}) {
    for (const SpecialToken& special : definition.specials) {
      if (special.text == name) return special.id;
    }
  }
  return std::nullopt;
}

void check_definition(const TokenizerDefinition& definition) {
  const TokenIndex index(definition.tokens);
  check_tokens(definition, index);
  check_specials(definition);
  check(vocab_size(definition) > 0, "a tokenizer without tokens");
  if (definition.kind == TokenizerKind::characters) return;
  check_bytes(definition, index);
  if (definition.kind == TokenizerKind::bpe) check_merges(definition, index);
}

uint64_t hash_of(const TokenizerDefinition& definition) {
  Fnv1a hash;
  hash.add_text("brrr tokenizer 1");
  hash.add_text(kind_name(definition.kind));
  hash.add_number(definition.tokens.size());
  for (const std::string& token : definition.tokens) hash.add_text(token);
  hash.add_number(definition.specials.size());
  for (const SpecialToken& special : definition.specials) {
    hash.add_text(special.text);
    hash.add_number(static_cast<uint64_t>(special.id));
  }
  hash.add_text(definition.pattern);
  hash.add_number(static_cast<uint64_t>(definition.rule));
  hash.add_number(definition.whole_words_first ? 1 : 0);
  hash.add_number(definition.merges.size());
  for (const auto& [left, right] : definition.merges)
    hash.add_number(pair_key(static_cast<uint32_t>(left), static_cast<uint32_t>(right)));
  return hash.value();
}

void add_special(TokenizerDefinition& definition, std::string_view text) {
  for (const SpecialToken& special : definition.specials) {
    if (special.text == text) return;
  }
  definition.specials.push_back({std::string(text), static_cast<int32_t>(vocab_size(definition))});
}

}  // namespace brrr::text
