// libFuzzer on the cutting of text into words: the scanners say what PCRE2 says, whole and in parts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "brrr/text/splitter.h"

using namespace brrr::text;

namespace {

void check_pattern(std::string_view pattern, std::string_view text) {
  static const std::string known[] = {std::string(kGpt2Pattern), std::string(kCl100kPattern)};
  static const auto scanners = {make_splitter(known[0]), make_splitter(known[1])};
  static const auto oracles = {make_regex_splitter(known[0]), make_regex_splitter(known[1])};
  const size_t index = pattern == kGpt2Pattern ? 0 : 1;
  const Splitter& scanner = *scanners.begin()[index];
  const auto words = scanner.split(text, TextEnd::here);
  if (words != oracles.begin()[index]->split(text, TextEnd::here)) std::abort();
  for (size_t size = 0; size <= text.size(); ++size) {
    const auto part = scanner.split(text.substr(0, size), TextEnd::later);
    if (part.size() > words.size() || !std::equal(part.begin(), part.end(), words.begin()))
      std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_pattern(kGpt2Pattern, text);
  check_pattern(kCl100kPattern, text);
  return 0;
}
