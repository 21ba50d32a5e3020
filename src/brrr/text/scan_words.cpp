#include "brrr/text/scan_words.h"

#include "brrr/base/error.h"
#include "brrr/text/char_class.h"
#include "brrr/text/utf8.h"

namespace brrr::text {
namespace {

// What a scanner sees at a place: a character, or why there is none.
enum class Seen : uint8_t {
  other,
  letter,
  number,
  space,
  newline,
  stop,       // the end of the text, or a byte that is not UTF-8: to what stands before, the same
  undecided,  // the end of a part, or a character cut by it
};
static_assert(static_cast<int>(Seen::newline) == static_cast<int>(CharClass::newline));

struct Look {
  Seen seen;
  uint8_t length;
};

constexpr size_t kUndecided = SIZE_MAX;  // the end of a word depends on what follows the text

constexpr bool is_blank(Seen seen) { return seen == Seen::space || seen == Seen::newline; }
constexpr bool is_word(Seen seen) { return seen <= Seen::number; }

class Text {
 public:
  Text(std::string_view bytes, TextEnd end) : bytes_(bytes), end_(end) {}

  size_t size() const { return bytes_.size(); }
  unsigned char byte(size_t at) const { return static_cast<unsigned char>(bytes_[at]); }
  bool has(size_t at, char wanted) const { return at < size() && bytes_[at] == wanted; }
  Seen at_end() const { return end_ == TextEnd::here ? Seen::stop : Seen::undecided; }

  Look at(size_t place) const {
    if (place >= size()) return {at_end(), 0};
    const CharClass known = kByteClass[byte(place)];
    if (known != CharClass::multibyte) return {static_cast<Seen>(known), 1};
    return decode(place);
  }

  // The end of the run of `kind` that contains `place` or ends there.
  size_t skip(size_t place, Seen kind) const {
    for (;;) {
      while (place < size() && kByteClass[byte(place)] == static_cast<CharClass>(kind)) ++place;
      const Look next = at(place);
      if (next.seen == Seen::undecided) return kUndecided;
      if (next.seen != kind) return place;
      place += next.length;
    }
  }

 private:
  Look decode(size_t place) const {
    const Utf8Char next = decode_utf8(bytes_.substr(place));
    switch (next.state) {
      case Utf8Char::State::whole: return {static_cast<Seen>(class_of(next.code)), next.length};
      case Utf8Char::State::truncated: return {at_end(), 0};
      case Utf8Char::State::broken: break;
    }
    return {Seen::stop, 0};
  }

  std::string_view bytes_;
  TextEnd end_;
};

// 's 't 're 've 'm 'll 'd behind an apostrophe at `place`: the end of it, or `place` when there is none.
// With `Caseless` also capitals, and the long s (U+017F) that folds to s.
template <bool Caseless>
size_t skip_contraction(const Text& text, size_t place) {
  const auto letter = [&](size_t at) -> int {
    const int byte = text.byte(at);
    return Caseless && byte >= 'A' && byte <= 'Z' ? byte + 32 : byte;
  };
  const bool may_grow = text.at_end() == Seen::undecided;
  const size_t first = place + 1, second = place + 2;
  if (first >= text.size()) return may_grow ? kUndecided : place;
  const int one = letter(first);
  if (one == 's' || one == 't' || one == 'm' || one == 'd') return second;
  const bool is_long_s = Caseless && one == 0xC5;
  if (one != 'r' && one != 'v' && one != 'l' && !is_long_s) return place;
  if (second >= text.size()) return may_grow ? kUndecided : place;
  const int two = letter(second);
  if (is_long_s) return two == 0xBF ? second + 1 : place;
  return two == (one == 'l' ? 'l' : 'e') ? second + 1 : place;
}

struct Blanks {
  size_t last;           // where the last character of the run begins
  size_t end;            // of the run
  size_t after_newline;  // behind its last \r or \n; 0 when there is none
  Seen next;             // what follows the run
};
Blanks scan_blanks(const Text& text, size_t place) {
  Blanks run{place, place, 0, Seen::stop};
  for (;;) {
    const Look next = text.at(run.end);
    run.next = next.seen;
    if (!is_blank(next.seen)) return run;
    run.last = run.end;
    run.end += next.length;
    if (next.seen == Seen::newline) run.after_newline = run.end;
  }
}

// \s+(?!\S)|\s+  : a run leaves its last character to the word that follows, unless it has no other.
size_t end_of_blanks(const Blanks& run, size_t begin) {
  return run.next == Seen::stop || run.last == begin ? run.end : run.last;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
struct Gpt2 {
  static size_t word_end(const Text& text, size_t begin, Look first) {
    const unsigned char byte = text.byte(begin);
    if (byte == '\'') {
      const size_t end = skip_contraction<false>(text, begin);
      if (end != begin) return end;
    }
    if (is_word(first.seen)) return text.skip(begin + first.length, first.seen);
    if (byte == ' ') {
      const Look next = text.at(begin + 1);
      if (next.seen == Seen::undecided) return kUndecided;
      if (is_word(next.seen)) return text.skip(begin + 1 + next.length, next.seen);
    }
    const Blanks run = scan_blanks(text, begin);
    return run.next == Seen::undecided ? kUndecided : end_of_blanks(run, begin);
  }
};

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
// \s*[\r\n]+|\s+(?!\S)|\s+
struct Cl100k {
  static size_t word_end(const Text& text, size_t begin, Look first) {
    if (text.byte(begin) == '\'') {
      const size_t end = skip_contraction<true>(text, begin);
      if (end != begin) return end;
    }
    const size_t second = begin + first.length;
    if (first.seen == Seen::letter) return text.skip(second, Seen::letter);
    if (first.seen == Seen::number) return skip_three_numbers(text, begin);
    if (first.seen != Seen::newline) {
      const Look next = text.at(second);
      if (next.seen == Seen::undecided) return kUndecided;
      if (next.seen == Seen::letter) return text.skip(second + next.length, Seen::letter);
      if (first.seen == Seen::other || (text.byte(begin) == ' ' && next.seen == Seen::other))
        return skip_others(text, second);
    }
    const Blanks run = scan_blanks(text, begin);
    if (run.next == Seen::undecided) return kUndecided;
    return run.after_newline != 0 ? run.after_newline : end_of_blanks(run, begin);
  }

  static size_t skip_three_numbers(const Text& text, size_t place) {
    for (int count = 0; count < 3; ++count) {
      const Look next = text.at(place);
      if (next.seen == Seen::undecided) return kUndecided;
      if (next.seen != Seen::number) break;
      place += next.length;
    }
    return place;
  }

  static size_t skip_others(const Text& text, size_t place) {
    const size_t end = text.skip(place, Seen::other);
    return end == kUndecided ? kUndecided : text.skip(end, Seen::newline);
  }
};

template <typename Pattern>
std::vector<uint32_t> scan(const Text& text) {
  std::vector<uint32_t> ends;
  ends.reserve(text.size() / 4 + 4);
  for (size_t begin = 0; begin < text.size();) {
    const Look first = text.at(begin);
    if (first.seen == Seen::undecided) break;
    // A stop before the end is a byte that is not UTF-8.
    const size_t end = first.seen == Seen::stop ? begin + 1 : Pattern::word_end(text, begin, first);
    if (end == kUndecided) break;
    ends.push_back(static_cast<uint32_t>(end));
    begin = end;
  }
  return ends;
}

// Whether the character that ends at `place` > 0 is whitespace.
bool blank_before(const Text& text, std::string_view bytes, size_t place) {
  const CharClass known = kByteClass[text.byte(place - 1)];
  if (known != CharClass::multibyte) return is_blank(static_cast<Seen>(known));
  for (size_t length = 2; length <= 4 && length <= place; ++length) {
    const Utf8Char before = decode_utf8(bytes.substr(place - length, length));
    if (before.state == Utf8Char::State::whole && before.length == length)
      return is_blank(static_cast<Seen>(class_of(before.code)));
  }
  return false;
}

}  // namespace

std::vector<uint32_t> scan_words(KnownPattern pattern, std::string_view text, TextEnd end) {
  invariant(text.size() < (size_t{1} << 31), "scan_words: a part of ", text.size(), " bytes");
  const Text view(text, end);
  return pattern == KnownPattern::gpt2 ? scan<Gpt2>(view) : scan<Cl100k>(view);
}

// Two kinds of places are cuts for both patterns, whatever came before.
//  - A space behind anything that is no whitespace: only runs of whitespace have a space that is not
//    their first character, and what ends there would end at the end of a text too.
//  - Behind a \n that stands alone between two characters that are no whitespace: no word goes on
//    after it, and a run of one character is the same at the end of a text.
size_t find_scan_cut(std::string_view bytes, size_t from) {
  const Text text(bytes, TextEnd::here);
  for (size_t place = from; place < text.size(); ++place) {
    if (text.byte(place) == ' ') {
      if (!blank_before(text, bytes, place)) return place;
    } else if (text.byte(place - 1) == '\n' && place >= 2 && !is_blank(text.at(place).seen) &&
               !blank_before(text, bytes, place - 1)) {
      return place;
    }
  }
  return text.size();
}

}  // namespace brrr::text
