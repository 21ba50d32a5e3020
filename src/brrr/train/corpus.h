// The data of a run: embedded stories, text files, or files of tokens, with their tokenizer. Text becomes
// token files in RUN/data once; a run that goes on finds them there.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "brrr/base/units.h"
#include "brrr/data/token_set.h"
#include "brrr/text/tokenizer.h"
#include "brrr/train/config.h"

namespace brrr {

struct Corpus {
  std::shared_ptr<const text::Tokenizer> tokenizer;  // null for token files that name none
  int64_t vocab = 0;
  TokenSet train, validation;    // no ranges: nothing is held out
  Bytes text_bytes;              // 0 for token files
  int64_t documents = 0;         // of both splits
  int64_t longest_document = 0;  // tokens
  std::string words;             // "30,000 embedded stories"
  std::string tokenizer_reason;  // what was chosen and why
  std::string tokenizer_hash;    // "bytes", or 16 digits
};

// Opens what RUN/data holds for these settings, or makes it; a run that goes on keeps its tokenizer. Throws
// Error for files that are missing, unreadable or empty.
Corpus make_corpus(const DataConfig& config, const std::filesystem::path& run_folder,
                   bool goes_on = false);

}  // namespace brrr
