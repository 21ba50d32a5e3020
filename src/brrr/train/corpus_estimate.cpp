// What a corpus will be, from what is there already or from a part of its text.
#include <algorithm>
#include <cmath>

#include "brrr/data/stories.h"
#include "brrr/io/mapped_file.h"
#include "brrr/train/corpus_sources.h"

namespace brrr::training {
namespace fs = std::filesystem;
namespace {

constexpr Bytes kLookedAt = 4_MiB;           // of all texts together, in parts spread over them
constexpr int64_t kStoriesLookedAt = 30000;  // a second or so

// Parts of the texts, and how much of them that is.
struct TextSample {
  std::vector<std::string> parts;
  Bytes bytes;
};

TextSample sample_texts(const std::vector<std::string>& files, Bytes all) {
  constexpr int64_t kPartBytes = 1 << 18;
  const double share =
      std::min(1.0, static_cast<double>(kLookedAt.value()) / static_cast<double>(all.value()));
  TextSample sample;
  for (const std::string& path : files) {
    const MappedFile file(path);
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                                file.bytes().size());
    if (share == 1) {
      sample.parts.emplace_back(text);
    } else {
      const auto size = static_cast<double>(text.size());
      const auto parts = std::max<int64_t>(1, std::llround(size * share / kPartBytes));
      for (int64_t i = 0; i < parts; ++i) {
        const auto begin =
            static_cast<size_t>(size * static_cast<double>(i) / static_cast<double>(parts));
        sample.parts.emplace_back(text.substr(begin, kPartBytes));
      }
    }
  }
  for (const std::string& part : sample.parts)
    sample.bytes += Bytes(static_cast<int64_t>(part.size()));
  return sample;
}

int64_t count_of(std::string_view text, const std::string& separator) {
  int64_t found = 0;
  for (size_t at = text.find(separator); at != std::string_view::npos;
       at = text.find(separator, at + separator.size()))
    ++found;
  return found;
}

int64_t scaled(int64_t count, double factor) {
  return std::llround(static_cast<double>(count) * factor);
}

// Splits as preparing will, and what the files will take.
void split_tokens(CorpusFacts& facts, int64_t tokens, double validation) {
  facts.validation_tokens = scaled(tokens, validation);
  facts.train_tokens = tokens - facts.validation_tokens;
  const int64_t token_bytes = facts.vocab <= 65536 ? 2 : 4;
  facts.data_bytes = Bytes(tokens * token_bytes + 8 * facts.documents);
}

CorpusFacts begin_facts(const ChosenTokenizer& chosen) {
  return {.is_estimate = true,
          .vocab = chosen.tokenizer->vocab_size(),
          .tokenizer = chosen.tokenizer->description(),
          .tokenizer_reason = chosen.reason};
}

CorpusFacts look_at_stories(const runs::DataConfig& config, const ChosenTokenizer& chosen) {
  CorpusFacts facts = begin_facts(chosen);
  const int64_t looked_at = std::min(config.stories, kStoriesLookedAt);
  int64_t tokens = 0, bytes = 0;
  for (int64_t i = 0; i < looked_at; ++i) {
    const std::string text = story(i, {.seed = kStorySeed});
    const auto length = static_cast<int64_t>(chosen.tokenizer->encode(text).size()) + 1;
    facts.longest_document = std::max(facts.longest_document, length);
    tokens += length;
    bytes += static_cast<int64_t>(text.size());
  }
  const int64_t held_out = held_out_stories(config);
  facts.documents = config.stories + held_out;
  const double factor = static_cast<double>(facts.documents) / static_cast<double>(looked_at);
  facts.text_bytes = Bytes(scaled(bytes, factor));
  split_tokens(facts, scaled(tokens, factor),
               static_cast<double>(held_out) / static_cast<double>(facts.documents));
  facts.sources = sources_of(config);
  facts.sources[0].train_tokens = facts.train_tokens;
  return facts;
}

CorpusFacts look_at_texts(const runs::DataConfig& config, const TextSample& sample, Bytes all,
                          const ChosenTokenizer& chosen) {
  CorpusFacts facts = begin_facts(chosen);
  int64_t tokens = 0, separators = 0;
  for (const std::string& part : sample.parts) {
    tokens += static_cast<int64_t>(chosen.tokenizer->encode(part).size());
    if (!config.separator.empty()) separators += count_of(part, config.separator);
  }
  const double factor =
      static_cast<double>(all.value()) / static_cast<double>(sample.bytes.value());
  facts.text_bytes = all;
  facts.documents = static_cast<int64_t>(config.files.size()) + scaled(separators, factor);
  const int64_t all_tokens = scaled(tokens, factor) + facts.documents;
  facts.longest_document = all_tokens / facts.documents;
  split_tokens(facts, all_tokens, config.validation);
  facts.sources = sources_of(config);
  for (size_t i = 0; i < facts.sources.size(); ++i) {
    const double part = config.weights.empty()
                            ? 1
                            : static_cast<double>(fs::file_size(config.files[i])) /
                                  static_cast<double>(all.value());
    facts.sources[i].train_tokens = scaled(facts.train_tokens, part);
  }
  return facts;
}

}  // namespace

CorpusFacts look_at_corpus(const runs::DataConfig& config, const fs::path& run_folder,
                           bool goes_on) {
  if (are_tokens(config)) return make_corpus(config, run_folder).facts;  // it only opens them
  const Bytes bytes = size_of_texts(config.files);
  std::optional<ChosenTokenizer> chosen =
      goes_on ? tokenizer_of_run(run_folder) : std::optional<ChosenTokenizer>();
  if (chosen) {
    if (const std::optional<Corpus> ready = open_prepared(config, run_folder, *chosen))
      return ready->facts;
  }
  const TextSample sample = sample_texts(config.files, bytes);
  if (!chosen) chosen = make_tokenizer_for(config, bytes, sample.parts);
  CorpusFacts facts = config.files.empty() ? look_at_stories(config, *chosen)
                                           : look_at_texts(config, sample, bytes, *chosen);
  facts.words = words_of(config, facts.text_bytes);
  return facts;
}

}  // namespace brrr::training
