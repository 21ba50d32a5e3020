// libFuzzer on the parsers of tokenizer files: they give a tokenizer whose text comes back, or throw Error.
// The first byte says which form the rest is; a form of two files is cut at the first zero byte.
// tests/fuzz/seeds has one input of each form.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "brrr/base/error.h"
#include "brrr/text/tokenizer_file.h"

namespace {

using namespace brrr::text;

TokenizerDefinition parse(uint8_t form, std::string_view input) {
  const size_t zero = input.find('\0');
  const std::string first(input.substr(0, zero));
  const std::string second(zero == std::string_view::npos ? "" : input.substr(zero + 1));
  switch (form % 3) {
    case 0: return parse_tokenizer_json(input, "fuzz.json");
    case 1: return parse_vocab_files({first, second}, "", "fuzz");
    default: return parse_tiktoken({first, second}, "gpt2", "fuzz.tiktoken");
  }
}

// A tokenizer needs a token for every byte, which no short input has: bytes without one get one.
void complete(TokenizerDefinition& definition) {
  bool present[256] = {};
  for (const std::string& token : definition.tokens) {
    if (token.size() == 1) present[static_cast<unsigned char>(token[0])] = true;
  }
  definition.tokens.resize(static_cast<size_t>(vocab_size(definition)));
  for (int byte = 0; byte < 256; ++byte) {
    if (!present[byte]) definition.tokens.emplace_back(1, static_cast<char>(byte));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    TokenizerDefinition definition = parse(data[0], input);
    complete(definition);
    const auto tokenizer = make_tokenizer(std::move(definition));
    if (tokenizer->decode(tokenizer->encode(input)) != input) std::abort();
    if (tokenizer->decode(tokenizer->encode(input, Specials::as_tokens)) != input) std::abort();
    if (parse_tokenizer_json(to_brrr_json(tokenizer->definition()), "again") !=
        tokenizer->definition())
      std::abort();
  } catch (const brrr::Error&) {  // what a file without meaning should do
  }
  return 0;
}
