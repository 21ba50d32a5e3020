#include "brrr/compiler/head/vocab_padding.h"

#include <charconv>

#include "brrr/base/error.h"

namespace brrr::compiler {
namespace {

constexpr int64_t kLargestMultiple = 65536;
// Columns of a tile of matrix units. Few columns go into narrow tiles; from some eight wide ones on a whole
// one is at most an eighth more.
constexpr int64_t kNarrowTile = 64, kWideTile = 128, kWideFrom = 8 * kWideTile;

// The product on the CPU packs its operands into panels of its own, whatever the length of their rows.
int64_t multiple_for(int64_t vocab, const Target& target) {
  if (!target.has_tensor_cores() || vocab % kNarrowTile == 0) return 1;
  return vocab < kWideFrom ? kNarrowTile : kWideTile;
}

}  // namespace

PadVocab parse_pad_vocab(std::string_view setting) {
  if (setting == "auto") return {};
  if (setting == "off") return {.by_target = false, .multiple = 1};
  int64_t multiple = 0;
  const auto [stop, failure] = std::from_chars(setting.begin(), setting.end(), multiple);
  check(failure == std::errc() && stop == setting.end() && multiple >= 1 &&
            multiple <= kLargestMultiple,
        "train.pad_vocab = ", setting, ": auto, off, or a whole number from 1 to ",
        kLargestMultiple, " is needed");
  return {.by_target = false, .multiple = multiple};
}

int64_t padded_vocab(int64_t vocab, std::string_view setting, const Target& target) {
  const PadVocab wanted = parse_pad_vocab(setting);
  const int64_t multiple = wanted.by_target ? multiple_for(vocab, target) : wanted.multiple;
  return (vocab + multiple - 1) / multiple * multiple;
}

}  // namespace brrr::compiler
