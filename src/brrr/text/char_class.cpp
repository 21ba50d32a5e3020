#include "brrr/text/char_class.h"

#include <string>
#include <vector>

#include "brrr/text/regex.h"
#include "brrr/text/utf8.h"

namespace brrr::text {
namespace {

constexpr uint32_t kCodes = 0x110000;
constexpr uint32_t kFirstSurrogate = 0xD800, kAfterSurrogates = 0xE000;

// Classes [first, last) by letting the pattern find its runs in a text of exactly these characters.
void class_range(std::vector<CharClass>& classes, Regex::Search& search, uint32_t first,
                 uint32_t last) {
  std::string text;
  for (uint32_t code = first; code < last; ++code) text += encode_utf8(code);
  constexpr std::array<CharClass, 4> by_group{CharClass::other, CharClass::letter,
                                              CharClass::number, CharClass::space};
  const auto length_at = [&](size_t at) {
    return decode_utf8(std::string_view(text).substr(at)).length;
  };
  size_t position = 0;
  uint32_t code = first;
  for (;;) {
    const Regex::Match match = search.find(text, position, false);
    if (match.state != Regex::Match::State::found) return;
    for (; position < match.begin; ++code) position += length_at(position);
    for (; position < match.end; ++code) {
      position += length_at(position);
      classes[code] = by_group[static_cast<size_t>(match.group)];
    }
  }
}

std::vector<CharClass> make_classes() {
  std::vector<CharClass> classes(kCodes, CharClass::other);
  const Regex regex(R"((\p{L}+)|(\p{N}+)|(\s+))");
  Regex::Search search(regex);
  class_range(classes, search, 0, kFirstSurrogate);
  class_range(classes, search, kAfterSurrogates, kCodes);
  classes['\r'] = classes['\n'] = CharClass::newline;
  return classes;
}

}  // namespace

CharClass class_of(uint32_t code) {
  static const std::vector<CharClass> classes = make_classes();
  return classes[code];
}

}  // namespace brrr::text
