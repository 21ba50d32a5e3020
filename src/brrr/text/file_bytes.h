// Whole small files: read with a limit on their size, and written so that a crash leaves the old one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace brrr::text {

inline constexpr int64_t kMaxTokenizerFileBytes = 256 << 20;

// Error, naming the file, when it cannot be read or is larger than kMaxTokenizerFileBytes.
std::string read_tokenizer_file(const std::string& path);

// Writes beside the file, syncs, and renames: what stands under the name is always whole.
void replace_file(const std::string& path, std::string_view content);

}  // namespace brrr::text
