#include "brrr/train/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <source_location>

#include "brrr/base/error.h"
#include "brrr/data/prepare.h"
#include "brrr/data/shard_writer.h"
#include "brrr/data/stories.h"
#include "brrr/io/atomic_file.h"
#include "brrr/text/tokenizer_file.h"
#include "brrr/train/corpus_sources.h"

namespace brrr::training {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

const fs::path kDataFolder = "data", kTokenizerFile = "tokenizer.json", kFactsFile = "corpus.json";
constexpr const char* kSplits[] = {"train", "validation"};

TokenEncoder encoder_of(const std::shared_ptr<const text::Tokenizer>& tokenizer) {
  TokenEncoder encoder{.encode = [tokenizer](std::string_view t) { return tokenizer->encode(t); },
                       .vocab_size = tokenizer->vocab_size(),
                       .hash = hash_text(*tokenizer)};
  if (const auto id = tokenizer->end_of_text()) encoder.end_of_text = *id;
  return encoder;
}

// ---- folders -------------------------------------------------------------------------------------
fs::path source_folder(const fs::path& run_folder, size_t source) {
  return run_folder / kDataFolder / fmt::format("source-{}", source + 1);
}

// The folders that hold tokens of the run, in the order of the sources.
std::vector<fs::path> token_folders(const fs::path& run_folder) {
  const fs::path data = run_folder / kDataFolder;
  std::vector<fs::path> folders;
  if (!fs::is_directory(data)) return folders;
  if (!find_shards(data, "train").empty()) folders.push_back(data);
  for (size_t i = 0; fs::is_directory(source_folder(run_folder, i)); ++i)
    folders.push_back(source_folder(run_folder, i));
  return folders;
}

void clear_shards(const fs::path& run_folder) {
  for (const fs::path& folder : token_folders(run_folder)) {
    for (const char* split : kSplits) {
      for (const fs::path& path : find_shards(folder, split)) fs::remove(path);
    }
    std::error_code not_empty;
    if (folder != run_folder / kDataFolder) fs::remove(folder, not_empty);
  }
}

// ---- making tokens -------------------------------------------------------------------------------
struct MadeFacts {
  int64_t documents = 0, bytes = 0;
  MadeFacts& operator+=(const MadeFacts& more) {
    documents += more.documents;
    bytes += more.bytes;
    return *this;
  }
};

MadeFacts write_stories(const text::Tokenizer& tokenizer, StorySplit split, int64_t count,
                        const fs::path& folder) {
  ShardWriter writer({.folder = folder,
                      .split = kSplits[split == StorySplit::train ? 0 : 1],
                      .vocab_size = tokenizer.vocab_size(),
                      .end_of_text = tokenizer.end_of_text().value_or(-1),
                      .tokenizer_hash = hash_text(tokenizer)});
  MadeFacts facts{.documents = count};
  for (int64_t i = 0; i < count; ++i) {
    const std::string text = story(i, {.seed = kStorySeed, .split = split});
    facts.bytes += static_cast<int64_t>(text.size());
    writer.begin_document();
    writer.append(tokenizer.encode(text));
  }
  writer.finish();
  return facts;
}

MadeFacts prepare_stories(const runs::DataConfig& config, const fs::path& folder,
                          const text::Tokenizer& tokenizer) {
  MadeFacts all = write_stories(tokenizer, StorySplit::train, config.stories, folder);
  if (const int64_t held_out = held_out_stories(config); held_out > 0)
    all += write_stories(tokenizer, StorySplit::validation, held_out, folder);
  return all;
}

MadeFacts prepare_files(const runs::DataConfig& config, const std::vector<fs::path>& files,
                        const fs::path& folder, const TokenEncoder& encoder) {
  const Prepared prepared = prepare_tokens(files, encoder,
                                           {.folder = folder,
                                            .separator = config.separator,
                                            .validation_part = config.validation,
                                            .seed = kStorySeed,
                                            .replace = true});
  return {.documents = prepared.train.document_count + prepared.validation.document_count,
          .bytes = prepared.text_bytes.value()};
}

MadeFacts prepare(const runs::DataConfig& config, const fs::path& run_folder,
                  const std::shared_ptr<const text::Tokenizer>& tokenizer) {
  clear_shards(run_folder);
  const fs::path data = run_folder / kDataFolder;
  fs::create_directories(data);
  if (config.files.empty()) return prepare_stories(config, data, *tokenizer);
  const TokenEncoder encoder = encoder_of(tokenizer);
  if (config.weights.empty())
    return prepare_files(config, {config.files.begin(), config.files.end()}, data, encoder);
  MadeFacts all;
  for (size_t i = 0; i < config.files.size(); ++i)
    all += prepare_files(config, {config.files[i]}, source_folder(run_folder, i), encoder);
  return all;
}

// ---- what a run has --------------------------------------------------------------------------------
// What the token files of a run were made from; the same settings and files give the same ones.
Json source_of(const runs::DataConfig& config) {
  Json files = Json::array();
  for (const std::string& path : config.files)
    files.push_back({{"path", path}, {"bytes", fs::file_size(path)}});
  Json source{{"files", files}, {"separator", config.separator}, {"validation", config.validation}};
  if (config.files.empty()) source["stories"] = config.stories;
  if (!config.weights.empty()) source["apart"] = true;  // one folder for each
  return source;
}

Json read_facts(const fs::path& run_folder) {
  std::ifstream file(run_folder / kDataFolder / kFactsFile);
  if (!file.good()) return {};
  const Json facts = Json::parse(file, nullptr, false);
  return facts.is_object() && facts.contains("source") ? facts : Json();
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

Bytes bytes_below(const fs::path& folder) {
  Bytes total;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, missing)) {
    if (entry.is_regular_file()) total += Bytes(static_cast<int64_t>(entry.file_size()));
  }
  return total;
}

int64_t count_tokens(const std::vector<BatchSource>& sources) {
  return std::accumulate(
      sources.begin(), sources.end(), int64_t{0},
      [](int64_t sum, const BatchSource& source) { return sum + source.tokens.token_count(); });
}

// Once the sources are open.
void count(const runs::DataConfig& config, Corpus& corpus) {
  CorpusFacts& facts = corpus.facts;
  facts.train_tokens = count_tokens(corpus.train);
  facts.validation_tokens = count_tokens(corpus.validation);
  facts.sources = sources_of(config);
  for (size_t i = 0; i < corpus.train.size(); ++i) {
    facts.sources[i].train_tokens = corpus.train[i].tokens.token_count();
    facts.longest_document =
        std::max(facts.longest_document, longest_document(corpus.train[i].tokens));
  }
}

ChosenTokenizer make_and_keep_tokenizer(const runs::DataConfig& config, Bytes bytes,
                                        const fs::path& run_folder) {
  ChosenTokenizer chosen = make_tokenizer_for(config, bytes);
  fs::create_directories(run_folder);
  text::save_tokenizer(*chosen.tokenizer, (run_folder / kTokenizerFile).string(),
                       text::FileForm::brrr);
  return chosen;
}

}  // namespace

std::string hash_text(const text::Tokenizer& tokenizer) {
  return fmt::format("{:016x}", tokenizer.hash());
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

int64_t held_out_stories(const runs::DataConfig& config) {
  return static_cast<int64_t>(static_cast<double>(config.stories) * config.validation /
                              (1 - config.validation));
}

std::string words_of(const runs::DataConfig& config, Bytes text_bytes) {
  if (config.files.empty()) return fmt::format("{} embedded stories", with_commas(config.stories));
  return fmt::format("{} of text in {} file{}", to_text(text_bytes), config.files.size(),
                     config.files.size() == 1 ? "" : "s");
}

std::vector<SourceFacts> sources_of(const runs::DataConfig& config) {
  if (config.weights.empty()) return {{.name = "all"}};
  const double total = std::accumulate(config.weights.begin(), config.weights.end(), 0.0);
  std::vector<SourceFacts> sources;
  for (size_t i = 0; i < config.files.size(); ++i)
    sources.push_back({.name = config.files[i], .share = config.weights[i] / total});
  return sources;
}

std::optional<ChosenTokenizer> tokenizer_of_run(const fs::path& run_folder) {
  const fs::path path = run_folder / kTokenizerFile;
  if (!fs::exists(path)) return {};
  return ChosenTokenizer{text::load_tokenizer(path.string()), "of this run"};
}

std::optional<Corpus> open_prepared(const runs::DataConfig& config, const fs::path& run_folder,
                                    const ChosenTokenizer& chosen) {
  Corpus corpus{.facts = {.vocab = chosen.tokenizer->vocab_size(),
                          .tokenizer = chosen.tokenizer->description(),
                          .tokenizer_reason = chosen.reason},
                .tokenizer = chosen.tokenizer,
                .tokenizer_hash = hash_text(*chosen.tokenizer),
                .train = {},
                .validation = {}};
  const Json made = read_facts(run_folder);
  if (made.is_null() || made["source"] != source_of(config) ||
      made["tokenizer"] != corpus.tokenizer_hash)
    return {};
  const std::vector<fs::path> folders = token_folders(run_folder);
  for (size_t i = 0; i < folders.size(); ++i) {
    const double weight = config.weights.empty() ? 1 : config.weights.at(i);
    corpus.train.push_back({open_tokens(folders[i], "train"), weight});
    if (!find_shards(folders[i], "validation").empty())
      corpus.validation.push_back({open_tokens(folders[i], "validation"), weight});
  }
  corpus.facts.documents = made["documents"].get<int64_t>();
  corpus.facts.text_bytes = Bytes(made["text_bytes"].get<int64_t>());
  corpus.facts.data_bytes = bytes_below(run_folder / kDataFolder);
  corpus.facts.words = words_of(config, corpus.facts.text_bytes);
  count(config, corpus);
  return corpus;
}

Corpus make_corpus(const runs::DataConfig& config, const fs::path& run_folder, bool goes_on) {
  if (are_tokens(config)) {
    Corpus corpus = open_token_files(config);
    count(config, corpus);
    return corpus;
  }
  const Bytes bytes = size_of_texts(config.files);
  const std::optional<ChosenTokenizer> own =
      goes_on ? tokenizer_of_run(run_folder) : std::optional<ChosenTokenizer>();
  const ChosenTokenizer chosen = own ? *own : make_and_keep_tokenizer(config, bytes, run_folder);
  if (std::optional<Corpus> ready = open_prepared(config, run_folder, chosen)) return *ready;
  fs::remove(run_folder / kDataFolder / kFactsFile);
  const MadeFacts made = prepare(config, run_folder, chosen.tokenizer);
  const Json facts{{"text_bytes", made.bytes},
                   {"documents", made.documents},
                   {"source", source_of(config)},
                   {"tokenizer", hash_text(*chosen.tokenizer)}};
  write_file_atomically(run_folder / kDataFolder / kFactsFile, facts.dump(1) + "\n");
  if (std::optional<Corpus> corpus = open_prepared(config, run_folder, chosen)) return *corpus;
  fail_invariant("tokens that were just made are those asked for", std::source_location::current());
}

std::optional<TokenSet> open_run_tokens(const fs::path& run_folder, std::string_view split) {
  TokenSet all{.name = join_text(run_folder.string(), " (", split, ")"), .ranges = {}};
  for (const fs::path& folder : token_folders(run_folder)) {
    if (find_shards(folder, split).empty()) continue;
    const TokenSet part = open_tokens(folder, split);
    all.ranges.insert(all.ranges.end(), part.ranges.begin(), part.ranges.end());
  }
  if (all.ranges.empty()) return {};
  return all;
}

}  // namespace brrr::training
