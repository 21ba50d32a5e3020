#include "brrr/data/story_grammar.h"

#include <algorithm>
#include <map>

#include "brrr/base/error.h"
#include "brrr/data/story_tables.h"

namespace brrr::story_grammar {
namespace {

// Turns templates into nodes. Rules name only rules above them, so no story is endless.
class Compiler {
 public:
  Grammar compile() {
    for (const Rule& rule : rules()) {
      std::vector<Sequence> alternatives;
      for (std::string_view text : rule.templates) alternatives.push_back(compile_template(text));
      rules_[rule.name] = add_choice(std::move(alternatives));
    }
    grammar_.variables = kVariables;
    grammar_.constraints = kConstraints;
    grammar_.start = rules_.at("story");
    return std::move(grammar_);
  }

 private:
  Sequence compile_template(std::string_view text) {
    Sequence nodes;
    while (!text.empty()) {
      const size_t mark = std::min(text.find_first_of("<({"), text.size());
      if (mark > 0) nodes.push_back({.kind = NodeKind::text, .text = text.substr(0, mark)});
      text.remove_prefix(mark);
      if (text.empty()) break;
      const char closing = text[0] == '<' ? '>' : text[0] == '(' ? ')' : '}';
      const size_t end = text.find(closing);
      invariant(end != text.npos, "stories: a mark is not closed in \"", text, "\"");
      nodes.push_back(compile_mark(text[0], text.substr(1, end - 1)));
      text.remove_prefix(end + 1);
    }
    return nodes;
  }

  Node compile_mark(char opening, std::string_view inside) {
    if (opening == '{') return compile_slot(inside);
    if (opening == '<') {
      const auto rule = rules_.find(inside);
      invariant(rule != rules_.end(), "stories: no rule \"", inside, "\" above its use");
      return {.kind = NodeKind::choice, .choice = rule->second};
    }
    std::vector<Sequence> words;
    while (true) {
      const size_t bar = inside.find('|');
      words.push_back({{.kind = NodeKind::text, .text = inside.substr(0, bar)}});
      if (bar == inside.npos) break;
      inside.remove_prefix(bar + 1);
    }
    return {.kind = NodeKind::choice, .choice = add_choice(std::move(words))};
  }

  static Node compile_slot(std::string_view inside) {
    const size_t dot = inside.find('.');
    const std::string_view name = inside.substr(0, dot);
    const auto* variable = std::ranges::find(kVariables, name, &Variable::name);
    invariant(variable != kVariables.end(), "stories: no variable \"", name, "\"");
    size_t form = 0;
    if (dot != inside.npos) {
      const auto found = std::ranges::find(variable->form_names, inside.substr(dot + 1));
      invariant(found != variable->form_names.end(), "stories: no form \"", inside, "\"");
      form = static_cast<size_t>(found - variable->form_names.begin());
    }
    return {.kind = NodeKind::slot,
            .variable = static_cast<int>(variable - kVariables.begin()),
            .form = static_cast<int>(form)};
  }

  int add_choice(std::vector<Sequence> alternatives) {
    grammar_.choices.push_back(std::move(alternatives));
    return static_cast<int>(grammar_.choices.size()) - 1;
  }

  Grammar grammar_;
  std::map<std::string_view, int> rules_;
};

// What is bound, with one variable more on trial.
struct Trial {
  const Grammar& grammar;
  const Values& values;
  int variable, entry;

  int value(int of) const { return of == variable ? entry : values[static_cast<size_t>(of)]; }
  bool is_bound(int of) const { return value(of) != kUnbound; }
  const Entry& entry_of(int of) const {
    return grammar.variables[static_cast<size_t>(of)].entries[static_cast<size_t>(value(of))];
  }
};

// Whether a + b = c, or can still be: the last of the three must have an entry that fits.
bool can_add(const Constraint& sum, const Trial& trial) {
  int unbound = 0, missing = 0, rest = 0;  // rest: c - a - b of those bound
  for (const auto& [variable, sign] : {std::pair(sum.a, -1), {sum.b, -1}, {sum.c, 1}}) {
    if (trial.is_bound(variable)) {
      rest += sign * trial.entry_of(variable).number;
    } else {
      ++unbound;
      missing = variable;
    }
  }
  if (unbound != 1) return unbound > 1 || rest == 0;
  const int wanted = missing == sum.c ? -rest : rest;
  return std::ranges::any_of(trial.grammar.variables[static_cast<size_t>(missing)].entries,
                             [&](const Entry& entry) { return entry.number == wanted; });
}

bool holds(const Constraint& constraint, const Trial& trial) {
  if (constraint.kind == ConstraintKind::adds) return can_add(constraint, trial);
  const int a = constraint.a, b = constraint.b;
  if (!trial.is_bound(a) || !trial.is_bound(b)) return true;
  const Gender of_a = trial.entry_of(a).gender, of_b = trial.entry_of(b).gender;
  return of_a == Gender::none || of_b == Gender::none || of_a == of_b;
}

}  // namespace

const Grammar& grammar() {
  static const Grammar compiled = Compiler().compile();
  return compiled;
}

bool is_allowed(const Grammar& grammar, const Values& values, int variable, int entry) {
  const Trial trial{grammar, values, variable, entry};
  return std::ranges::all_of(
      grammar.constraints, [&](const Constraint& constraint) { return holds(constraint, trial); });
}

std::string_view text_of(const Grammar& grammar, int variable, int form, int entry) {
  return grammar.variables[static_cast<size_t>(variable)]
      .entries[static_cast<size_t>(entry)]
      .forms[static_cast<size_t>(form)];
}

}  // namespace brrr::story_grammar
