#include "brrr/train/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "brrr/base/error.h"
#include "brrr/data/prepare.h"
#include "brrr/data/shard_writer.h"
#include "brrr/data/stories.h"
#include "brrr/io/atomic_file.h"
#include "brrr/text/tokenizer_file.h"
#include "brrr/train/tokenizer_choice.h"

namespace brrr {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

const fs::path kDataFolder = "data", kTokenizerFile = "tokenizer.json", kFactsFile = "corpus.json";

std::string hash_text(const text::Tokenizer& tokenizer) {
  return fmt::format("{:016x}", tokenizer.hash());
}

TokenEncoder encoder_of(const std::shared_ptr<const text::Tokenizer>& tokenizer) {
  TokenEncoder encoder{.encode = [tokenizer](std::string_view t) { return tokenizer->encode(t); },
                       .vocab_size = tokenizer->vocab_size(),
                       .hash = hash_text(*tokenizer)};
  if (const auto id = tokenizer->end_of_text()) encoder.end_of_text = *id;
  return encoder;
}

// ---- making tokens -------------------------------------------------------------------------------
struct SplitFacts {
  int64_t documents = 0, bytes = 0;
};

SplitFacts write_stories(const text::Tokenizer& tokenizer, StorySplit split, int64_t count,
                         const fs::path& folder) {
  ShardWriter writer({.folder = folder,
                      .split = split == StorySplit::train ? "train" : "validation",
                      .vocab_size = tokenizer.vocab_size(),
                      .end_of_text = tokenizer.end_of_text().value_or(-1),
                      .tokenizer_hash = hash_text(tokenizer)});
  SplitFacts facts{.documents = count};
  for (int64_t i = 0; i < count; ++i) {
    const std::string text = story(i, {.seed = kStorySeed, .split = split});
    facts.bytes += static_cast<int64_t>(text.size());
    writer.begin_document();
    writer.append(tokenizer.encode(text));
  }
  writer.finish();
  return facts;
}

void clear_shards(const fs::path& folder) {
  fs::create_directories(folder);
  for (const char* split : {"train", "validation"}) {
    for (const fs::path& path : find_shards(folder, split)) fs::remove(path);
  }
}

Json prepare_stories(const DataConfig& config, const fs::path& run_folder,
                     const std::shared_ptr<const text::Tokenizer>& tokenizer) {
  const fs::path folder = run_folder / kDataFolder;
  clear_shards(folder);
  const auto held_out = static_cast<int64_t>(static_cast<double>(config.stories) *
                                             config.validation / (1 - config.validation));
  SplitFacts all = write_stories(*tokenizer, StorySplit::train, config.stories, folder);
  if (held_out > 0) {
    const SplitFacts more = write_stories(*tokenizer, StorySplit::validation, held_out, folder);
    all.documents += more.documents, all.bytes += more.bytes;
  }
  return {{"text_bytes", all.bytes}, {"documents", all.documents}};
}

Json prepare_files(const DataConfig& config, const fs::path& run_folder,
                   const std::shared_ptr<const text::Tokenizer>& tokenizer) {
  const std::vector<fs::path> files(config.files.begin(), config.files.end());
  const Prepared prepared = prepare_tokens(files, encoder_of(tokenizer),
                                           {.folder = run_folder / kDataFolder,
                                            .separator = config.separator,
                                            .validation_part = config.validation,
                                            .seed = kStorySeed,
                                            .replace = true});
  return {{"text_bytes", prepared.text_bytes.value()},
          {"documents", prepared.train.document_count + prepared.validation.document_count}};
}

// ---- what a run has --------------------------------------------------------------------------------
// What the token files of a run were made from; the same settings and files give the same ones.
Json source_of(const DataConfig& config) {
  Json files = Json::array();
  for (const std::string& path : config.files)
    files.push_back({{"path", path}, {"bytes", fs::file_size(path)}});
  Json source{{"files", files}, {"separator", config.separator}, {"validation", config.validation}};
  if (config.files.empty()) source["stories"] = config.stories;
  return source;
}

Bytes size_of_texts(const std::vector<std::string>& files) {
  Bytes total;
  for (const std::string& path : files) {
    check(fs::exists(path), path, ": there is no such file");
    check(fs::is_regular_file(path), path, " is no file of text");
    check(std::ifstream(path).good(), path, ": cannot be read; are you allowed to?");
    check(fs::file_size(path) > 0, path, " is empty: there is nothing to learn from");
    total += Bytes(static_cast<int64_t>(fs::file_size(path)));
  }
  return total;
}

Json read_facts(const fs::path& run_folder) {
  std::ifstream file(run_folder / kDataFolder / kFactsFile);
  if (!file.good()) return {};
  const Json facts = Json::parse(file, nullptr, false);
  return facts.is_object() && facts.contains("source") ? facts : Json();
}

// A run that goes on has its tokenizer; a new one makes it.
ChosenTokenizer tokenizer_of(const DataConfig& config, Bytes bytes, const fs::path& run_folder,
                             bool goes_on) {
  const fs::path path = run_folder / kTokenizerFile;
  if (goes_on && fs::exists(path)) return {text::load_tokenizer(path.string()), "of this run"};
  ChosenTokenizer chosen = make_tokenizer_for(config, bytes);
  fs::create_directories(run_folder);
  text::save_tokenizer(*chosen.tokenizer, path.string(), text::FileForm::brrr);
  return chosen;
}

int64_t longest_document(const TokenSet& tokens) {
  int64_t longest = 0;
  for (const TokenRange& range : tokens.ranges) {
    const int64_t end = range.file->token_count();
    for (int64_t start = range.file->next_document(0); start < end;) {
      const int64_t next = range.file->next_document(start + 1);
      longest = std::max(longest, next - start);
      start = next;
    }
  }
  return longest;
}

bool are_tokens(const std::string& path) {
  if (fs::is_directory(path)) return true;
  const std::string ending = fs::path(path).extension().string();
  return ending == ".tokens" || ending == ".bin" || ending == ".npy";
}

int64_t count_documents(const TokenSet& tokens) {
  int64_t documents = 0;
  for (const TokenRange& range : tokens.ranges)
    documents += range.file->document_count().value_or(0);
  return documents;
}

// Token files stay where they are. One source; what is held out is the shards of that name, or the tail.
Corpus open_token_files(const DataConfig& config) {
  check(config.files.size() == 1, "token files are taken one at a time, not ", config.files.size(),
        "; a folder of `brrr data prepare` may hold many shards");
  const fs::path path = config.files.front();
  check(fs::exists(path), path.string(), ": there is no such file or folder");
  Corpus corpus;
  const TokenSet all = open_tokens(path, "train");
  const bool has_split = fs::is_directory(path) && !find_shards(path, "validation").empty();
  if (has_split) {
    corpus.train = all;
    corpus.validation = open_tokens(path, "validation");
  } else if (config.validation > 0) {
    TokenSplit split = split_tail(all, config.validation);
    corpus.train = std::move(split.front), corpus.validation = std::move(split.tail);
  } else {
    corpus.train = all;
  }
  const auto& shard = all.ranges.front().file->layout().shard;
  corpus.tokenizer_hash = shard ? shard->tokenizer_hash : std::string();
  if (config.tokenizer != "auto") {
    ChosenTokenizer chosen = make_tokenizer_for(config, Bytes());
    corpus.tokenizer = std::move(chosen.tokenizer), corpus.tokenizer_reason = chosen.reason;
    check(!shard || shard->tokenizer_hash == hash_text(*corpus.tokenizer), path.string(),
          " was made with the tokenizer ", corpus.tokenizer_hash, ", and ", config.tokenizer,
          " is ", hash_text(*corpus.tokenizer));
  }
  corpus.vocab = config.vocab.value_or(shard              ? shard->vocab_size
                                       : corpus.tokenizer ? corpus.tokenizer->vocab_size()
                                                          : 0);
  check(corpus.vocab > 0, path.string(),
        " does not say how many ids there are; give --vocab or "
        "--tokenizer");
  corpus.documents = count_documents(corpus.train) + count_documents(corpus.validation);
  corpus.longest_document = longest_document(corpus.train);
  corpus.words = join_text("tokens of ", path.string());
  return corpus;
}

}  // namespace

Corpus make_corpus(const DataConfig& config, const fs::path& run_folder, bool goes_on) {
  Corpus corpus;
  const bool tokens_given =
      !config.files.empty() && std::all_of(config.files.begin(), config.files.end(), are_tokens);
  if (tokens_given) return open_token_files(config);
  const Bytes bytes = size_of_texts(config.files);
  ChosenTokenizer chosen = tokenizer_of(config, bytes, run_folder, goes_on);
  corpus.tokenizer = std::move(chosen.tokenizer),
  corpus.tokenizer_reason = std::move(chosen.reason);
  corpus.tokenizer_hash = hash_text(*corpus.tokenizer);
  corpus.vocab = corpus.tokenizer->vocab_size();

  Json facts = read_facts(run_folder);
  const Json source = source_of(config);
  if (facts.is_null() || facts["source"] != source || facts["tokenizer"] != corpus.tokenizer_hash) {
    fs::remove(run_folder / kDataFolder / kFactsFile);
    facts = config.files.empty() ? prepare_stories(config, run_folder, corpus.tokenizer)
                                 : prepare_files(config, run_folder, corpus.tokenizer);
    facts["source"] = source;
    facts["tokenizer"] = corpus.tokenizer_hash;
    write_file_atomically(run_folder / kDataFolder / kFactsFile, facts.dump(1) + "\n");
  }
  const fs::path folder = run_folder / kDataFolder;
  corpus.train = open_tokens(folder, "train");
  if (!find_shards(folder, "validation").empty())
    corpus.validation = open_tokens(folder, "validation");
  corpus.text_bytes = Bytes(facts["text_bytes"].get<int64_t>());
  corpus.documents = facts["documents"].get<int64_t>();
  corpus.longest_document = longest_document(corpus.train);
  corpus.words = config.files.empty()
                     ? fmt::format("{} embedded stories", with_commas(config.stories))
                     : fmt::format("{} of text in {} file{}", to_text(corpus.text_bytes),
                                   config.files.size(), config.files.size() == 1 ? "" : "s");
  return corpus;
}

}  // namespace brrr
