// Cuts text into words ("pre-tokens"), the pieces inside which BPE merges. The words of a text, one
// after another, are the text. A pattern says where they end; a byte that is not UTF-8 is a word by
// itself, and the texts before and after it are cut as if they stood alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace brrr::text {

// GPT-2's pattern, and that of cl100k_base (GPT-4, Llama 3). Both have scanners of their own, several
// times quicker than PCRE2, which serves every other pattern.
extern const std::string_view kGpt2Pattern;
extern const std::string_view kCl100kPattern;

// "gpt2" and "cl100k" are names of the two above; anything else is a pattern already.
std::string pattern_from_name(std::string_view name);

enum class TextEnd : uint8_t {
  here,
  later,  // more text follows: a word that it could change is not cut yet
};

class Splitter {
 public:
  virtual ~Splitter() = default;

  // Where the words of `text` (below 2 GiB) end, in order. With TextEnd::later only those that are the
  // same whatever follows; the rest of the text belongs to the next part.
  virtual std::vector<uint32_t> split(std::string_view text, TextEnd end) const = 0;

  // A place at or after `from`, which is not 0, where the text may be cut in two that have the same
  // words as the whole; text.size() when none is known.
  virtual size_t find_cut(std::string_view text, size_t from) const = 0;
};

// Uses the scanner of a known pattern, and PCRE2 for others.
std::unique_ptr<Splitter> make_splitter(const std::string& pattern);
// Always PCRE2: the oracle of the scanners.
std::unique_ptr<Splitter> make_regex_splitter(const std::string& pattern);

}  // namespace brrr::text
