// Token files as the data of a run: of `brrr data prepare`, or of others.
#include <algorithm>

#include "brrr/base/error.h"
#include "brrr/text/tokenizer_file.h"
#include "brrr/train/corpus_sources.h"

namespace brrr::training {
namespace fs = std::filesystem;
namespace {

bool is_token_path(const std::string& path) {
  if (fs::is_directory(path)) return true;
  const std::string ending = fs::path(path).extension().string();
  return ending == ".tokens" || ending == ".bin" || ending == ".npy";
}

int64_t count_documents(const std::vector<BatchSource>& sources) {
  int64_t documents = 0;
  for (const BatchSource& source : sources) {
    for (const TokenRange& range : source.tokens.ranges)
      documents += range.file->document_count().value_or(0);
  }
  return documents;
}

TokenSplit open_split(const fs::path& path, double validation) {
  check(fs::exists(path), path.string(), ": there is no such file or folder");
  const TokenSet all = open_tokens(path, "train");
  const bool has_split = fs::is_directory(path) && !find_shards(path, "validation").empty();
  if (has_split) return {all, open_tokens(path, "validation")};
  if (validation > 0) return split_tail(all, validation);
  return {all, {}};
}

const ShardHeader* header_of(const TokenSet& tokens) {
  const auto& shard = tokens.ranges.front().file->layout().shard;
  return shard ? &*shard : nullptr;
}

// Files without weights are one source, their tokens behind each other.
void add_source(std::vector<BatchSource>& sources, TokenSet tokens,
                const runs::DataConfig& config) {
  if (tokens.ranges.empty()) return;
  if (!config.weights.empty()) {
    sources.push_back({std::move(tokens), 1});
  } else if (sources.empty()) {
    sources.push_back({std::move(tokens), 1});
  } else {
    std::vector<TokenRange>& ranges = sources.front().tokens.ranges;
    ranges.insert(ranges.end(), tokens.ranges.begin(), tokens.ranges.end());
  }
}

// Ids mean the same in all files: those that say which tokenizer made them agree.
void take_tokenizer(const runs::DataConfig& config, const fs::path& path, const ShardHeader* header,
                    Corpus& corpus) {
  if (!header) return;
  std::string& hash = corpus.tokenizer_hash;
  check(hash.empty() || hash == header->tokenizer_hash, path.string(),
        " was made with the tokenizer ", header->tokenizer_hash, ", and ", hash,
        corpus.tokenizer ? join_text(" is that of ", config.tokenizer)
                         : std::string(" made the files before it"),
        "; prepare them all with one");
  hash = header->tokenizer_hash;
  corpus.facts.vocab = std::max(corpus.facts.vocab, header->vocab_size);
}

void set_tokenizer(ChosenTokenizer chosen, Corpus& corpus) {
  corpus.tokenizer = std::move(chosen.tokenizer);
  corpus.tokenizer_hash = hash_text(*corpus.tokenizer);
  corpus.facts.tokenizer = corpus.tokenizer->description();
  corpus.facts.tokenizer_reason = chosen.reason;
  corpus.facts.vocab = corpus.tokenizer->vocab_size();
}

// The tokenizer that `brrr data prepare` left beside the tokens; none where they came another way.
void take_tokenizer_beside(const fs::path& tokens, Corpus& corpus) {
  const fs::path file = (fs::is_directory(tokens) ? tokens : fs::absolute(tokens).parent_path()) /
                        text::kTokenizerFileName;
  if (!fs::exists(file)) return;
  const std::string made_by = corpus.tokenizer_hash;
  set_tokenizer({text::load_tokenizer(file.string()), join_text("from ", file.string())}, corpus);
  check(made_by.empty() || corpus.tokenizer_hash == made_by, file.string(), " is the tokenizer ",
        corpus.tokenizer_hash, ", and ", tokens.string(), " was made with ", made_by,
        "; name the right one with --tokenizer, or prepare the tokens again");
}

}  // namespace

bool are_tokens(const runs::DataConfig& config) {
  const auto text = std::find_if_not(config.files.begin(), config.files.end(), is_token_path);
  if (text == config.files.end()) return !config.files.empty();
  const auto tokens = std::find_if(config.files.begin(), config.files.end(), is_token_path);
  check(tokens == config.files.end(), *tokens, " holds tokens and ", *text,
        " is text; give files of one sort, or turn the text into tokens with `brrr data prepare`");
  return false;
}

Corpus open_token_files(const runs::DataConfig& config) {
  Corpus corpus;
  check(config.tokenizer != "bpe" && config.tokenizer != "char", "tokenizer ", config.tokenizer,
        ": ", config.files.front(),
        " holds tokens already; give the file of the tokenizer that "
        "made them");
  if (config.tokenizer != "auto") set_tokenizer(make_tokenizer_for(config, Bytes()), corpus);
  for (size_t i = 0; i < config.files.size(); ++i) {
    TokenSplit split = open_split(config.files[i], config.validation);
    take_tokenizer(config, config.files[i], header_of(split.front), corpus);
    const bool held_out = !split.tail.ranges.empty();
    add_source(corpus.train, std::move(split.front), config);
    add_source(corpus.validation, std::move(split.tail), config);
    if (config.weights.empty()) continue;
    corpus.train.back().weight = config.weights[i];
    if (held_out) corpus.validation.back().weight = config.weights[i];
  }
  if (!corpus.tokenizer) take_tokenizer_beside(config.files.front(), corpus);
  CorpusFacts& facts = corpus.facts;
  facts.vocab = config.vocab.value_or(facts.vocab);
  check(facts.vocab > 0, config.files.front(),
        " does not say how many ids there are; give --vocab or --tokenizer");
  facts.documents = count_documents(corpus.train) + count_documents(corpus.validation);
  facts.words = config.files.size() == 1 ? join_text("tokens of ", config.files.front())
                                         : join_text("tokens of ", config.files.size(), " files");
  return corpus;
}

}  // namespace brrr::training
