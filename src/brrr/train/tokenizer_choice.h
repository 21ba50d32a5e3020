// Which tokenizer a run uses: the one that is asked for, or one that suits the amount of text, made from
// that text.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "brrr/base/units.h"
#include "brrr/run/config.h"
#include "brrr/text/tokenizer.h"

namespace brrr::training {

// The embedded corpus is the same for every seed; the order in which it is read is not.
inline constexpr uint64_t kStorySeed = 0;

// How a text of so many bytes is cut into tokens when nobody says it.
struct TokenizerChoice {
  std::string kind;   // "char" or "bpe"
  int64_t vocab = 0;  // of bpe
  std::string reason;
};
TokenizerChoice choose_tokenizer(Bytes text_bytes);

struct ChosenTokenizer {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::string reason;  // for people
};
// Reads the files of the configuration, or the stories where there are none; with a sample of their text
// only that, for looking.
ChosenTokenizer make_tokenizer_for(const runs::DataConfig& config, Bytes text_bytes,
                                   std::span<const std::string> sample = {});

}  // namespace brrr::training
