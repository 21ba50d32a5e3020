// Text larger than memory: read block by block, and cut only where a tokenizer allows it, so that the
// ids are those of the text in one piece. Memory holds a block, its ids, and the longest word.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <span>
#include <string>
#include <string_view>

#include "brrr/text/tokenizer.h"

namespace brrr::text {

struct StreamOptions {
  size_t block_bytes = 8 << 20;
};

// Takes the beginning of what there is of a text and returns the number of bytes it took: all of them
// at the end. The rest comes again, with more behind it.
using TakePart = std::function<size_t(std::string_view text, TextEnd end)>;

// `name` is for messages.
void read_in_parts(std::istream& in, const std::string& name, const TakePart& take,
                   const StreamOptions& options = {});
// Error for a file that cannot be read.
void read_file_in_parts(const std::string& path, const TakePart& take,
                        const StreamOptions& options = {});

using TakeIds = std::function<void(std::span<const int32_t> ids)>;

// Calls take(ids) for part after part; returns the bytes of the text.
int64_t encode_stream(const Tokenizer& tokenizer, std::istream& in, const std::string& name,
                      Specials specials, const TakeIds& take, const StreamOptions& options = {});
int64_t encode_file(const Tokenizer& tokenizer, const std::string& path, Specials specials,
                    const TakeIds& take, const StreamOptions& options = {});

}  // namespace brrr::text
