#include "brrr/ops/einops/einops_parse.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "brrr/base/error.h"

namespace brrr {
namespace {

using Kind = PatternAxis::Kind;

constexpr size_t kLongestText = 10'000;
constexpr size_t kMostDigits = 15;  // an axis of 10^15 elements fits nowhere, and i64 holds it

enum class Token : uint8_t { name, number, dots, open, close, comma, arrow, end };

constexpr bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

class PatternParser {
 public:
  PatternParser(PatternUse use, std::string_view text) : text_(text) {
    pattern_.use = use;
    pattern_.text = text;
    check(text.size() <= kLongestText, to_text(use), ": the pattern has ", text.size(),
          " characters; at most ", kLongestText, " are read");
  }

  Pattern parse() {
    next();
    pattern_.inputs.push_back(parse_side());
    while (token_ == Token::comma) {
      if (!is_einsum()) fault(at_, "a comma parts the operands of einsum; here there is one");
      next();
      pattern_.inputs.push_back(parse_side());
    }
    if (token_ != Token::arrow) fault(at_, "'->' is missing; write \"inputs -> output\"");
    next();
    pattern_.output = parse_side();
    if (token_ == Token::arrow) fault(at_, "there is a second '->'");
    if (token_ == Token::comma) fault(at_, "there is one output; a comma may stand before '->'");
    return std::move(pattern_);
  }

 private:
  bool is_einsum() const { return pattern_.use == PatternUse::einsum; }
  [[noreturn]] void fault(TextRange at, const std::string& message) const {
    fail_at(to_text(pattern_.use), text_, at, message);
  }

  void next() {
    size_t i = at_.position + at_.length;
    while (i < text_.size() && is_space(text_[i])) ++i;
    at_ = {i, 1};
    if (i == text_.size()) {
      token_ = Token::end;
      return;
    }
    const char c = text_[i];
    if (is_letter(c)) return take(Token::name, [](char d) { return is_letter(d) || is_digit(d); });
    if (is_digit(c)) return take(Token::number, is_digit);
    const std::string_view rest = text_.substr(i);
    if (rest.starts_with("...")) return take(Token::dots, size_t{3});
    if (rest.starts_with("->")) return take(Token::arrow, size_t{2});
    switch (c) {
      case '(': return take(Token::open, size_t{1});
      case ')': return take(Token::close, size_t{1});
      case ',': return take(Token::comma, size_t{1});
      case '.': fault(at_, "a single dot; any number of axes is '...'");
      default: fault(at_, "this character has no meaning; use names, 1, '...', ( ) , and ->");
    }
  }
  void take(Token token, size_t length) {
    token_ = token;
    at_.length = length;
  }
  template <typename Belongs>
  void take(Token token, Belongs belongs) {
    size_t end = at_.position;
    while (end < text_.size() && belongs(text_[end])) ++end;
    take(token, end - at_.position);
  }
  std::string_view word() const { return text_.substr(at_.position, at_.length); }

  PatternSide parse_side() {
    PatternSide side;
    while (true) {
      switch (token_) {
        case Token::name:
        case Token::number:
        case Token::dots:
          side.push_back({{parse_axis()}, at_});
          next();
          break;
        case Token::open: side.push_back(parse_group()); break;
        case Token::close: fault(at_, "')' closes nothing; its '(' is missing");
        default: return side;
      }
    }
  }

  PatternGroup parse_group() {
    PatternGroup group{{}, at_};
    if (is_einsum()) fault(at_, "einsum has no ( ); rearrange() the operand or the result");
    next();
    for (; token_ != Token::close; next()) {
      if (token_ == Token::open) fault(at_, "( ) inside ( ): groups do not nest");
      if (token_ == Token::end || token_ == Token::comma || token_ == Token::arrow)
        fault(group.at, "this '(' is never closed");
      group.axes.push_back(parse_axis());
    }
    group.at.length = at_.position + 1 - group.at.position;
    next();
    return group;
  }

  PatternAxis parse_axis() {
    switch (token_) {
      case Token::name: return {.kind = Kind::name, .name = name_number(), .at = at_};
      case Token::dots: return {.kind = Kind::dots, .at = at_};
      default: return {.kind = Kind::number, .size = number(), .at = at_};
    }
  }

  int name_number() {
    if (word() == "_") fault(at_, "'_' is no name: an axis needs one that both sides can use");
    auto& names = pattern_.names;
    const auto found = std::ranges::find(names, word());
    if (found == names.end()) return names.emplace_back(word()), static_cast<int>(names.size()) - 1;
    return static_cast<int>(found - names.begin());
  }

  int64_t number() const {
    if (is_einsum()) fault(at_, "einsum takes names and '...', no numbers");
    if (at_.length > kMostDigits) fault(at_, "this number is too large for the size of an axis");
    int64_t value = 0;
    for (char digit : word()) value = 10 * value + (digit - '0');
    if (value == 0) fault(at_, "an axis of size 0 has no place in a pattern");
    return value;
  }

  std::string_view text_;
  Pattern pattern_;
  Token token_ = Token::end;
  TextRange at_{0, 0};
};

// ---- rules that a well-formed pattern must keep --------------------------------------------------

const PatternAxis* find_dots(const PatternGroup& group) {
  const auto found = std::ranges::find(group.axes, Kind::dots, &PatternAxis::kind);
  return found == group.axes.end() ? nullptr : &*found;
}
const PatternAxis* find_dots(const PatternSide& side) {
  for (const PatternGroup& group : side) {
    if (const PatternAxis* dots = find_dots(group)) return dots;
  }
  return nullptr;
}

bool names_axis(const PatternSide& side, int name) {
  return std::ranges::any_of(side, [name](const PatternGroup& group) {
    return std::ranges::find(group.axes, name, &PatternAxis::name) != group.axes.end();
  });
}

class PatternRules {
 public:
  explicit PatternRules(const Pattern& pattern) : pattern_(pattern) {}

  void check_all() const {
    check_dots();
    check_repeats(pattern_.output);
    if (pattern_.use == PatternUse::einsum) {
      for_axes(pattern_.output, [&](const PatternAxis& axis) { require_on_left(axis); });
      return;
    }
    check_repeats(pattern_.inputs[0]);
    for_axes(pattern_.inputs[0], [&](const PatternAxis& axis) { check_left(axis); });
    for_axes(pattern_.output, [&](const PatternAxis& axis) { check_right(axis); });
  }

 private:
  template <typename Visit>
  static void for_axes(const PatternSide& side, Visit visit) {
    for (const PatternGroup& group : side) std::ranges::for_each(group.axes, visit);
  }
  std::string quoted(const PatternAxis& axis) const {
    return join_text('"', pattern_.names[static_cast<size_t>(axis.name)], '"');
  }

  void check_dots() const {
    const PatternAxis* right = find_dots(pattern_.output);
    bool on_left = false;
    for (const PatternSide& side : pattern_.inputs) {
      check_once(side);
      on_left |= find_dots(side) != nullptr;
    }
    check_once(pattern_.output);
    if (right && !on_left)
      fail_at(pattern_, right->at, "'...' stands for nothing: there is none on the left");
    if (pattern_.use == PatternUse::einsum) return;
    for (const PatternGroup& group : pattern_.inputs[0]) {
      const PatternAxis* inside = find_dots(group);
      if (inside && (group.axes.size() > 1 || group.at.length != inside->at.length))
        fail_at(pattern_, inside->at,
                "'...' in ( ) on the left: how to cut an axis into it is unknown");
    }
    if (on_left && !right && pattern_.use != PatternUse::reduce)
      fail_at(pattern_, find_dots(pattern_.inputs[0])->at,
              "'...' is lost: put it on the right as well, or reduce() it away");
  }

  void check_once(const PatternSide& side) const {
    int count = 0;
    for_axes(side, [&](const PatternAxis& axis) {
      if (axis.kind == Kind::dots && ++count > 1)
        fail_at(pattern_, axis.at, "'...' may stand once on a side");
    });
  }

  void check_repeats(const PatternSide& side) const {
    std::vector<bool> seen(pattern_.names.size(), false);
    for_axes(side, [&](const PatternAxis& axis) {
      if (axis.kind != Kind::name) return;
      if (seen[static_cast<size_t>(axis.name)])
        fail_at(pattern_, axis.at, join_text("the name ", quoted(axis), " stands twice on a side"));
      seen[static_cast<size_t>(axis.name)] = true;
    });
  }

  void check_left(const PatternAxis& axis) const {
    const bool reduces = pattern_.use == PatternUse::reduce;
    if (axis.kind == Kind::number && axis.size != 1 && !reduces)
      fail_at(pattern_, axis.at, "only 1 may stand here as a number; give the axis a name");
    if (axis.kind == Kind::name && !reduces && !names_axis(pattern_.output, axis.name))
      fail_at(pattern_, axis.at,
              join_text("the name ", quoted(axis),
                        " is not on the right; reduce() takes axes away, not ",
                        to_text(pattern_.use), "()"));
  }

  void check_right(const PatternAxis& axis) const {
    const bool repeats = pattern_.use == PatternUse::repeat;
    if (axis.kind == Kind::number && axis.size != 1 && !repeats)
      fail_at(pattern_, axis.at, "only 1 may stand here as a number; repeat() makes new axes");
    if (!repeats) require_on_left(axis);
  }

  void require_on_left(const PatternAxis& axis) const {
    if (axis.kind != Kind::name) return;
    for (const PatternSide& side : pattern_.inputs) {
      if (names_axis(side, axis.name)) return;
    }
    fail_at(pattern_, axis.at,
            join_text("the name ", quoted(axis), " is not on the left",
                      pattern_.use == PatternUse::einsum ? blanks_hint(pattern_)
                                                         : "; repeat() makes new axes"));
  }

  const Pattern& pattern_;
};

// ---- the table -----------------------------------------------------------------------------------

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

struct PatternTable {
  // Programs write patterns down; one that makes them up without end must not fill the memory.
  static constexpr size_t kMostPatterns = 4096;
  std::shared_mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const Pattern>, TextHash, std::equal_to<>> all;
};

PatternTable& table_of(PatternUse use) {
  static PatternTable tables[4];
  return tables[static_cast<size_t>(use)];
}

// A side with each name taken apart into letters: "ij" is "i j".
std::string letters_of(const PatternSide& side, const Pattern& pattern) {
  std::string text;
  const auto add = [&](std::string_view axis) { text += join_text(text.empty() ? "" : " ", axis); };
  for (const PatternGroup& group : side) {
    if (group.is_dots()) {
      add("...");
      continue;
    }
    for (const char& letter : pattern.names[static_cast<size_t>(group.axes[0].name)])
      add({&letter, 1});
  }
  return text;
}

// At most one name, of at most as many letters as a tensor has axes: "ij", "...ij".
bool looks_unspaced(const PatternSide& side, const Pattern& pattern) {
  constexpr size_t kMostAxes = 8;
  size_t names = 0;
  for (const PatternGroup& group : side) {
    if (group.is_dots()) continue;
    const std::string& name = pattern.names[static_cast<size_t>(group.axes[0].name)];
    if (++names > 1 || name.size() > kMostAxes) return false;
  }
  return true;
}

// Bytes that go on with a UTF-8 character take no column of their own.
size_t columns(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

bool has_dots(const PatternSide& side) { return find_dots(side) != nullptr; }

std::string blanks_hint(const Pattern& pattern) {
  const auto unspaced = [&](const PatternSide& side) { return looks_unspaced(side, pattern); };
  const bool all = std::ranges::all_of(pattern.inputs, unspaced) && unspaced(pattern.output);
  const bool any = std::ranges::any_of(pattern.names, [](auto& name) { return name.size() > 1; });
  if (!all || !any) return "";
  std::string inputs;
  for (const PatternSide& side : pattern.inputs)
    inputs += join_text(inputs.empty() ? "" : ", ", letters_of(side, pattern));
  const std::string output = letters_of(pattern.output, pattern);
  for (char letter : output) {
    if (inputs.find(letter) == std::string::npos) return "";
  }
  return join_text("; separate names by blanks: \"", inputs, " ->", output.empty() ? "" : " ",
                   output, "\"");
}

std::string_view to_text(PatternUse use) {
  switch (use) {
    case PatternUse::rearrange: return "rearrange";
    case PatternUse::reduce: return "reduce";
    case PatternUse::repeat: return "repeat";
    case PatternUse::einsum: break;
  }
  return "einsum";
}

void fail_at(std::string_view op, std::string_view text, TextRange at, const std::string& message) {
  std::string line(text);
  std::ranges::replace_if(
      line, [](char c) { return c >= 0 && c < ' '; }, ' ');
  const size_t width = std::max<size_t>(1, columns(text.substr(at.position, at.length)));
  fail(op, ": ", message, "\n  ", line, "\n  ",
       std::string(columns(text.substr(0, at.position)), ' '), '^', std::string(width - 1, '~'));
}

void fail_at(const Pattern& pattern, TextRange at, const std::string& message) {
  fail_at(to_text(pattern.use), pattern.text, at, message);
}

Pattern parse_pattern(PatternUse use, std::string_view text) {
  Pattern pattern = PatternParser(use, text).parse();
  PatternRules(pattern).check_all();
  return pattern;
}

std::shared_ptr<const Pattern> find_pattern(PatternUse use, std::string_view text) {
  PatternTable& table = table_of(use);
  {
    const std::shared_lock lock(table.mutex);
    const auto found = table.all.find(text);
    if (found != table.all.end()) return found->second;
  }
  auto pattern = std::make_shared<const Pattern>(parse_pattern(use, text));
  const std::unique_lock lock(table.mutex);
  if (table.all.size() >= PatternTable::kMostPatterns) table.all.clear();
  return table.all.emplace(text, std::move(pattern)).first->second;
}

}  // namespace brrr
