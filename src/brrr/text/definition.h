// All that a tokenizer is, as data: files are read into it and written from it, training makes it, and
// make_tokenizer (tokenizer.h) turns it into something that encodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace brrr::text {

enum class TokenizerKind : uint8_t {
  bytes,       // every byte is a token
  characters,  // every character is a token; one without a token falls back to its bytes
  bpe,         // byte pairs merged inside the words of a pattern
};
std::string_view kind_name(TokenizerKind kind);  // "byte", "char", "bpe"

// How BPE picks the next pair to merge: by its place in a list (Hugging Face, GPT-2's files), or by the
// id of the token that it makes, whatever pair makes it (tiktoken).
enum class MergeRule : uint8_t { by_list, by_id };

struct Merge {
  int32_t left = 0, right = 0;
  bool operator==(const Merge&) const = default;
};

// A token that no text can make: it is encoded only where the caller asks for it.
struct SpecialToken {
  std::string text;
  int32_t id = 0;
  bool operator==(const SpecialToken&) const = default;
};

struct TokenizerDefinition {
  TokenizerKind kind = TokenizerKind::bytes;
  std::vector<std::string> tokens;     // bytes by id; empty where there is none or a special one
  std::vector<SpecialToken> specials;  // in the order of their ids

  // For BPE alone.
  std::string pattern;  // cuts text into words, see splitter.h
  MergeRule rule = MergeRule::by_list;
  std::vector<Merge> merges;       // earliest first; empty with by_id
  bool whole_words_first = false;  // a word that is a token is taken without merging

  bool operator==(const TokenizerDefinition&) const = default;
};

inline constexpr int64_t kMaxIds = 1 << 24;  // the largest vocabularies have some 2^18
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

// Ids that a model needs room for: the largest one + 1.
int64_t vocab_size(const TokenizerDefinition& definition);

// The token that ends a document, by one of the names that are in use.
std::optional<int32_t> find_end_of_text(const TokenizerDefinition& definition);

// Throws Error, naming the rule and the value, unless every rule of the definition holds.
void check_definition(const TokenizerDefinition& definition);

// A 64-bit name of the definition, for files that hold its ids: equal definitions have equal names,
// however they were stored, and a change of any part changes it.
uint64_t hash_of(const TokenizerDefinition& definition);

// Adds a special token with the next free id, unless there is one of that text.
void add_special(TokenizerDefinition& definition, std::string_view text);

}  // namespace brrr::text
