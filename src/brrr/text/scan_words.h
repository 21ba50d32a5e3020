// Scanners for the two patterns that nearly all byte-level tokenizers use. Each says the same as PCRE2
// does of its pattern (tests/text/splitter_test.cpp), without trying alternatives one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "brrr/text/splitter.h"

namespace brrr::text {

enum class KnownPattern : uint8_t { gpt2, cl100k };

// As Splitter::split and Splitter::find_cut; the cuts are right for both patterns.
std::vector<uint32_t> scan_words(KnownPattern pattern, std::string_view text, TextEnd end);
size_t find_scan_cut(std::string_view text, size_t from);

}  // namespace brrr::text
