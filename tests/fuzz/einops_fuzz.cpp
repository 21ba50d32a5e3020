// libFuzzer on the parser of patterns: it parses, or it throws Error, and nothing else.
// The first byte says which function the pattern is for. Built by the preset fuzz (cmake/BrrrFuzz.cmake);
// the same promise is held in every build by EinopsParse.EitherParsesOrThrowsError on fixed seeds.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "brrr/base/error.h"
#include "brrr/ops/einops/einops_parse.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto use = static_cast<brrr::PatternUse>(data[0] % 4);
  try {
    brrr::parse_pattern(use, {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const brrr::Error&) {  // what a pattern without meaning should do
  }
  return 0;
}
