// Text to token ids and back.
//   auto tokenizer = text::load_tokenizer("gpt2/tokenizer.json");       (tokenizer_file.h)
//   std::vector<int32_t> ids = tokenizer->encode("Hello world");        // 15496, 995
//   tokenizer->decode(ids) == "Hello world"                             // for any bytes at all
// A tokenizer never changes, so threads may share one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/text/definition.h"
#include "brrr/text/special_finder.h"
#include "brrr/text/splitter.h"

namespace brrr::text {

enum class Specials : uint8_t {
  as_text,    // "<|endoftext|>" in a text is thirteen characters like any others
  as_tokens,  // it is the special token: only for text whose author may say so
};

struct EncodedPart {
  std::vector<int32_t> ids;
  size_t bytes = 0;  // how much of the text they stand for
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Large texts are shared among the threads of the pool; the ids are the same for any number of them.
  std::vector<int32_t> encode(std::string_view text, Specials specials = Specials::as_text) const;

  // As much of `text` as has the same ids whatever follows, where more follows. StreamEncoder and
  // encode_file (stream.h) put the parts of a text together.
  EncodedPart encode_part(std::string_view text, TextEnd end,
                          Specials specials = Specials::as_text) const;

  // The bytes of the ids, one after another, special ones as their text. An id alone may be part of a
  // character, so what is shown while it grows should be cut at whole ones.
  std::string decode(std::span<const int32_t> ids) const;
  std::string_view bytes_of(int32_t id) const;  // Error for an id that stands for nothing

  int64_t vocab_size() const { return static_cast<int64_t>(bytes_.size()); }
  std::optional<int32_t> end_of_text() const { return end_of_text_; }
  const TokenizerDefinition& definition() const { return definition_; }
  // Names the tokenizer in files that hold its ids; see hash_of.
  uint64_t hash() const { return hash_; }
  // "byte-level BPE, 50257 ids, 50000 merges, GPT-2's pattern, 1 special token"
  std::string description() const;

 protected:
  explicit Tokenizer(TokenizerDefinition definition);

  // Appends the ids of text without special tokens; returns how many bytes it took, all of them
  // unless more follows. Called from several threads at a time.
  virtual size_t append_ids(std::string_view text, TextEnd end,
                            std::vector<int32_t>& ids) const = 0;
  // As Splitter::find_cut.
  virtual size_t find_cut(std::string_view text, size_t from) const = 0;

 private:
  TokenizerDefinition definition_;
  SpecialFinder special_finder_, no_specials_;
  std::vector<std::string> bytes_;  // by id, special ones included
  std::optional<int32_t> end_of_text_;
  uint64_t hash_;
};

// Checks the definition and makes a tokenizer of it.
std::unique_ptr<Tokenizer> make_tokenizer(TokenizerDefinition definition);

// 256 ids, one for each byte, and after them the special tokens.
TokenizerDefinition define_byte_tokenizer(std::span<const std::string> specials = {});

enum class UnknownCharacters : uint8_t {
  as_bytes,  // every byte has a token too, so that any text can be encoded
  refuse,    // only what is in the text has tokens, as in nanoGPT; other characters are an Error
};
// The characters of `text` in the order of Unicode, then bytes without a token, then special tokens.
TokenizerDefinition define_char_tokenizer(std::string_view text,
                                          UnknownCharacters unknown = UnknownCharacters::as_bytes,
                                          std::span<const std::string> specials = {});

}  // namespace brrr::text
