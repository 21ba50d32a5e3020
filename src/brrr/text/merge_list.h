// Merges as text ("Ġ t"), the vocabulary they belong to, and the two ways to see the same merges: as a
// list, and as ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "brrr/text/definition.h"
#include "brrr/text/json_fields.h"

namespace brrr::text {

// Fills definition.merges from pairs of tokens in byte-level text.
using MergeTexts = std::vector<std::pair<std::string, std::string>>;
void set_merges(TokenizerDefinition& definition, const MergeTexts& merges, const std::string& name);
MergeTexts merge_texts(const TokenizerDefinition& definition);

// One line of merges.txt. Error unless it is two texts with a space between.
std::pair<std::string, std::string> parse_merge(std::string_view line, const std::string& name);

// The vocabulary as files have it: byte-level text, special tokens as they are, in the order of ids.
IdList vocabulary_texts(const TokenizerDefinition& definition);

// A definition with a list of merges that encodes as one with ranks does. Error where there is none: a
// token that is not made of exactly two others.
TokenizerDefinition with_merge_list(const TokenizerDefinition& definition);
// The other way round; Error where the ids are not in the order of the merges.
TokenizerDefinition with_ranks(const TokenizerDefinition& definition);

// Whether the bytes of every token are encoded as that token, so that taking whole words first, or not,
// is the same.
bool every_token_makes_itself(const TokenizerDefinition& definition);

}  // namespace brrr::text
