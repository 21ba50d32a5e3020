// The grammar of the embedded stories, as data that the generator and the parser both walk.
//
// A rule is a choice between templates. In a template, <rule> stands for another rule, (a|b) for a
// choice between words, and {variable} or {variable.form} for something of the story: the hero's name,
// a colour, a number. A variable has one value in a whole story, so every later mention repeats the
// first, and constraints tie variables together: a boy is a "he", two and three make five.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brrr::story_grammar {

inline constexpr int kMaxForms = 6;
inline constexpr int kUnbound = -1;

enum class Gender : uint8_t { none, female, male };

// One value that a variable can take, in all its forms.
struct Entry {
  std::array<std::string_view, kMaxForms> forms = {};
  int number = 0;                // of a number word
  Gender gender = Gender::none;  // of a person, or of "girl" and "boy"
};

struct Variable {
  std::string_view name;
  std::span<const std::string_view> form_names;  // {hero.his} is the form "his"; {hero} the first
  std::span<const Entry> entries;
};

enum class ConstraintKind : uint8_t {
  agrees,  // a and b do not differ in gender
  adds,    // a + b = c
};
struct Constraint {
  ConstraintKind kind;
  int a, b, c = kUnbound;
};

enum class NodeKind : uint8_t { text, slot, choice };
struct Node {
  NodeKind kind;
  std::string_view text = {};  // of a text
  int variable = kUnbound;     // of a slot
  int form = 0;                // of a slot
  int choice = kUnbound;       // of a choice: an index of Grammar::choices
};
using Sequence = std::vector<Node>;

struct Grammar {
  std::span<const Variable> variables;
  std::span<const Constraint> constraints;
  std::vector<std::vector<Sequence>> choices;  // the alternatives of each rule and each (a|b)
  int start = kUnbound;                        // the choice that is a whole story
};

// Compiled from the tables at the first call.
const Grammar& grammar();

// The value of each variable: an index of its entries, or kUnbound.
using Values = std::vector<int>;

// Whether `entry` of `variable` is compatible with all that is bound.
bool is_allowed(const Grammar& grammar, const Values& values, int variable, int entry);

std::string_view text_of(const Grammar& grammar, int variable, int form, int entry);

}  // namespace brrr::story_grammar
