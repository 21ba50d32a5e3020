// The patterns of einsum, rearrange, reduce and repeat as data: text such as
//   "batch (heads d), ... d -> batch heads ..."
// becomes sides of groups of axes, with names as small numbers and the place of each in the text, so
// that an error can point at it. A text is parsed once; later calls find it in a table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace brrr {

enum class PatternUse : uint8_t { rearrange, reduce, repeat, einsum };

struct TextRange {
  size_t position = 0, length = 1;
};

struct PatternAxis {
  enum class Kind : uint8_t { name, number, dots };
  Kind kind = Kind::name;
  int name = -1;     // which of Pattern::names
  int64_t size = 0;  // of a number
  TextRange at;
};

// Axes that are one axis of the tensor: (heads d), a name alone, a 1, or () which is a 1 as well.
struct PatternGroup {
  std::vector<PatternAxis> axes;
  TextRange at;
  bool is_dots() const { return axes.size() == 1 && axes[0].kind == PatternAxis::Kind::dots; }
};

using PatternSide = std::vector<PatternGroup>;
bool has_dots(const PatternSide& side);

struct Pattern {
  PatternUse use = PatternUse::rearrange;
  std::string text;
  std::vector<std::string> names;
  std::vector<PatternSide> inputs;  // one, except for einsum
  PatternSide output;
};

// Parses and checks what does not depend on sizes; throws Error with a caret under the fault.
Pattern parse_pattern(PatternUse use, std::string_view text);
// The same through a table that all threads share.
std::shared_ptr<const Pattern> find_pattern(PatternUse use, std::string_view text);

std::string_view to_text(PatternUse use);

// What to add to a message about a pattern whose names look like NumPy's, one letter an axis and no blanks
// ("ij,jk->ik"): the rule, and the pattern as it should be written. Nothing for other patterns.
std::string blanks_hint(const Pattern& pattern);

// Throws Error: the message, the text, and a caret under a part of it.
[[noreturn]] void fail_at(std::string_view op, std::string_view text, TextRange at,
                          const std::string& message);
[[noreturn]] void fail_at(const Pattern& pattern, TextRange at, const std::string& message);

}  // namespace brrr
