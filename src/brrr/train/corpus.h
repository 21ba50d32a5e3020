// The data of a run: embedded stories, text files, or files of tokens, with their tokenizer. Text becomes
// token files in RUN/data once; a run that goes on finds them there. Sources that are mixed by weight
// have a folder each, RUN/data/source-1 and so on.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "brrr/base/units.h"
#include "brrr/data/batches.h"
#include "brrr/run/config.h"
#include "brrr/text/tokenizer.h"

namespace brrr::training {

struct SourceFacts {
  std::string name;
  double share = 1;  // of the rows that are trained on
  int64_t train_tokens = 0;
};

// What sizes are chosen from, and what people are told.
struct CorpusFacts {
  bool is_estimate = false;  // from a part of the text, which nobody has tokenised yet
  int64_t vocab = 0;
  int64_t train_tokens = 0, validation_tokens = 0;
  int64_t documents = 0;         // of both splits
  int64_t longest_document = 0;  // tokens
  Bytes text_bytes;              // 0 for token files
  Bytes data_bytes;              // what RUN/data takes
  std::string words;             // "30,000 embedded stories"
  std::string tokenizer;         // in words; empty for token files that name none
  std::string tokenizer_reason;  // why this one
  std::vector<SourceFacts> sources;
};

struct Corpus {
  CorpusFacts facts;
  std::shared_ptr<const text::Tokenizer> tokenizer;  // null for token files that name none
  std::string tokenizer_hash;                        // "bytes", or 16 digits
  std::vector<BatchSource> train, validation;        // none: nothing is held out
};

// Opens what RUN/data holds for these settings, or makes it; a run that goes on keeps its tokenizer. Throws
// Error for files that are missing, unreadable or empty.
Corpus make_corpus(const runs::DataConfig& config, const std::filesystem::path& run_folder,
                   bool goes_on = false);

// The same for looking only, and nothing is written: what is there is counted, and of texts that are not
// tokenised yet a few megabytes are.
CorpusFacts look_at_corpus(const runs::DataConfig& config, const std::filesystem::path& run_folder,
                           bool goes_on = false);

// The tokens of one split that a run made for itself, all sources behind each other; nothing where the
// folder has none.
std::optional<TokenSet> open_run_tokens(const std::filesystem::path& run_folder,
                                        std::string_view split);

}  // namespace brrr::training
