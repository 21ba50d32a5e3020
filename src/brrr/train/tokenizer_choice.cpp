#include "brrr/train/tokenizer_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>

#include "brrr/base/error.h"
#include "brrr/data/stories.h"
#include "brrr/text/char_set.h"
#include "brrr/text/stream.h"
#include "brrr/text/tokenizer_file.h"
#include "brrr/text/train_bpe.h"

namespace brrr::training {
namespace {

constexpr int64_t kStoriesForMerges = 4000;  // of them the tokenizer learns its words
constexpr int64_t kStoryVocab = 1024;
constexpr Bytes kCharLimit = 2_MiB;
constexpr int64_t kMostCharacters = 2048;

std::vector<std::string> end_of_text() { return {std::string(text::kEndOfText)}; }

text::TokenizerDefinition story_tokenizer(int64_t vocab) {
  std::vector<std::string> stories;
  for (int64_t i = 0; i < kStoriesForMerges; ++i) stories.push_back(story(i, {.seed = kStorySeed}));
  const std::vector<std::string_view> views(stories.begin(), stories.end());
  return text::train_bpe(views, {.vocab_size = vocab});
}

text::TokenizerDefinition bpe_tokenizer(const std::vector<std::string>& files,
                                        std::span<const std::string> sample, int64_t vocab) {
  if (sample.empty()) return text::train_bpe_on_files(files, {.vocab_size = vocab});
  const std::vector<std::string_view> views(sample.begin(), sample.end());
  return text::train_bpe(views, {.vocab_size = vocab});
}

text::TokenizerDefinition char_tokenizer(std::vector<std::string> files,
                                         std::span<const std::string> sample) {
  text::CharSet characters;
  for (const std::string& part : sample) characters.add_part(part, text::TextEnd::here);
  if (!sample.empty()) files.clear();
  for (const std::string& path : files) {
    text::read_file_in_parts(path, [&](std::string_view part, text::TextEnd end) {
      return characters.add_part(part, end);
    });
  }
  return characters.define(text::UnknownCharacters::as_bytes, end_of_text());
}

ChosenTokenizer file_tokenizer(const runs::DataConfig& config, Bytes bytes,
                               std::span<const std::string> sample) {
  TokenizerChoice choice = choose_tokenizer(bytes);
  if (config.tokenizer != "auto") choice = {config.tokenizer, choice.vocab, "as asked for"};
  if (choice.kind == "byte")
    return {text::make_tokenizer(text::define_byte_tokenizer(end_of_text())), choice.reason};
  if (choice.kind == "char") {
    text::TokenizerDefinition characters = char_tokenizer(config.files, sample);
    const int64_t ids = text::vocab_size(characters);
    if (config.tokenizer != "auto" || ids <= kMostCharacters)
      return {text::make_tokenizer(std::move(characters)), choice.reason};
    choice.reason = fmt::format("{} different characters are too many for so little text", ids);
  }
  const int64_t vocab = config.vocab.value_or(std::max<int64_t>(choice.vocab, 1024));
  return {text::make_tokenizer(bpe_tokenizer(config.files, sample, vocab)), choice.reason};
}

}  // namespace

TokenizerChoice choose_tokenizer(Bytes text_bytes) {
  if (text_bytes < kCharLimit)
    return {"char", 0,
            fmt::format("{} of text are too few to learn words from: one token a character",
                        to_text(text_bytes))};
  // A vocabulary grows with the text, so that each id is seen often; past 8192 the head of a small model
  // costs more than shorter texts save.
  const auto wanted = static_cast<uint64_t>(text_bytes.value() / 2048);
  const int64_t vocab = std::clamp(static_cast<int64_t>(std::bit_floor(wanted)), int64_t{1024},
                                   text_bytes < 256_MiB ? int64_t{8192} : int64_t{32768});
  return {"bpe", vocab,
          fmt::format("{} of text are enough to learn {} byte pairs", to_text(text_bytes), vocab)};
}

ChosenTokenizer make_tokenizer_for(const runs::DataConfig& config, Bytes text_bytes,
                                   std::span<const std::string> sample) {
  const std::string& wanted = config.tokenizer;
  const bool is_kind = wanted == "auto" || wanted == "bpe" || wanted == "char" || wanted == "byte";
  if (!is_kind) {
    check(std::filesystem::exists(wanted), "tokenizer \"", wanted,
          "\": there is no such file or folder; use auto, bpe, char, byte, or a file of `brrr "
          "tokenize train`");
    return {text::load_tokenizer(wanted), join_text("from ", wanted)};
  }
  if (!config.files.empty()) return file_tokenizer(config, text_bytes, sample);
  check(wanted == "auto" || wanted == "bpe", "tokenizer ", wanted,
        ": the embedded stories have one of byte pairs; use auto or bpe");
  const int64_t vocab = config.vocab.value_or(kStoryVocab);
  return {text::make_tokenizer(story_tokenizer(vocab)), "trained on the stories"};
}

}  // namespace brrr::training
