// What making a corpus and looking at one share; see corpus.h.
#pragma once

#include "brrr/train/corpus.h"
#include "brrr/train/tokenizer_choice.h"

namespace brrr::training {

std::string hash_text(const text::Tokenizer& tokenizer);

// Whether the configuration names files of tokens. Throws Error where it names both those and texts.
bool are_tokens(const runs::DataConfig& config);
// Token files stay where they are. What is held out is the shards of that name, or the tail.
Corpus open_token_files(const runs::DataConfig& config);

// Throws Error naming the first file that is missing, unreadable or empty.
Bytes size_of_texts(const std::vector<std::string>& files);

// What RUN/data holds for these settings and this tokenizer; nothing where it must be made first.
std::optional<Corpus> open_prepared(const runs::DataConfig& config,
                                    const std::filesystem::path& run_folder,
                                    const ChosenTokenizer& chosen);
// The tokenizer of a run that goes on; nothing for a run that has none yet.
std::optional<ChosenTokenizer> tokenizer_of_run(const std::filesystem::path& run_folder);

// "30,000 embedded stories", "3 MiB of text in 2 files"
std::string words_of(const runs::DataConfig& config, Bytes text_bytes);
// How many of the embedded stories are held out.
int64_t held_out_stories(const runs::DataConfig& config);
// Names and shares of what is mixed; one source of all files where nothing is.
std::vector<SourceFacts> sources_of(const runs::DataConfig& config);

}  // namespace brrr::training
