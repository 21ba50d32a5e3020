// Whether a text is a story: the grammar walked along the text, trying alternatives in turn.
// Alternatives part within a few words, so going back is cheap; a rule never names itself, so it ends.
#include <algorithm>
#include <vector>

#include "brrr/base/error.h"
#include "brrr/data/stories.h"
#include "brrr/data/story_grammar.h"

namespace brrr {
namespace {

using namespace story_grammar;  // NOLINT: this file is about nothing else

// What is still to be matched: the rest of a sequence, then the rest of those around it.
struct Pending {
  const Node* next;
  const Node* end;
  const Pending* outer;
};

class Parser {
 public:
  explicit Parser(std::string_view text)
      : text_(text), values_(grammar_.variables.size(), kUnbound) {}

  StoryVerdict parse() {
    const Node whole{.kind = NodeKind::choice, .choice = grammar_.start};
    const Pending all{&whole, &whole + 1, nullptr};
    if (match(all, 0)) return {.parses = true, .position = text_.size(), .reason = {}};
    return {.parses = false, .position = furthest_, .reason = reason()};
  }

 private:
  // Whether the text from `position` on is what is pending. Leaves values_ as it was when not.
  bool match(const Pending& pending, size_t position) {
    if (pending.next == pending.end) {
      if (pending.outer) return match(*pending.outer, position);
      if (position < text_.size()) note(position, "the end");
      return position == text_.size();
    }
    const Node& node = *pending.next;
    const Pending rest{pending.next + 1, pending.end, pending.outer};
    switch (node.kind) {
      case NodeKind::text: return match_text(node.text, rest, position);
      case NodeKind::slot: return match_slot(node, rest, position);
      case NodeKind::choice:
        for (const Sequence& sequence : grammar_.choices[static_cast<size_t>(node.choice)]) {
          if (match({sequence.data(), sequence.data() + sequence.size(), &rest}, position))
            return true;
        }
        return false;
    }
    return false;
  }

  bool match_text(std::string_view wanted, const Pending& rest, size_t position) {
    const std::string_view found = text_.substr(position);
    if (found.starts_with(wanted)) return match(rest, position + wanted.size());
    // The fault is told by words: from the start of the first one that differs.
    const size_t differs =
        static_cast<size_t>(std::ranges::mismatch(wanted, found).in1 - wanted.begin());
    const size_t space = differs == 0 ? wanted.npos : wanted.rfind(' ', differs - 1);
    const size_t start = space == wanted.npos ? 0 : space + 1;
    note(position + start, quoted(wanted.substr(start, wanted.find(' ', start + 1) - start)));
    return false;
  }

  bool match_slot(const Node& node, const Pending& rest, size_t position) {
    int& value = values_[static_cast<size_t>(node.variable)];
    const std::string_view found = text_.substr(position);
    if (value != kUnbound) {
      const std::string_view wanted = text_of(grammar_, node.variable, node.form, value);
      if (found.starts_with(wanted) && match(rest, position + wanted.size())) return true;
      if (!found.starts_with(wanted)) note(position, describe(node.variable, quoted(wanted)));
      return false;
    }
    const Variable& variable = grammar_.variables[static_cast<size_t>(node.variable)];
    std::vector<std::string_view> allowed;
    bool any = false;
    for (int entry = 0; entry < static_cast<int>(variable.entries.size()); ++entry) {
      if (!is_allowed(grammar_, values_, node.variable, entry)) continue;
      const std::string_view wanted = text_of(grammar_, node.variable, node.form, entry);
      allowed.push_back(wanted);
      if (!found.starts_with(wanted)) continue;
      any = true;
      value = entry;
      if (match(rest, position + wanted.size())) return true;
      value = kUnbound;
    }
    if (!any)
      note(position, describe(node.variable, allowed.size() == 1 ? quoted(allowed[0]) : ""));
    return false;
  }

  static std::string quoted(std::string_view text) { return join_text('"', text, '"'); }
  std::string describe(int variable, const std::string& value) const {
    const std::string_view name = grammar_.variables[static_cast<size_t>(variable)].name;
    return value.empty() ? join_text("a word for the ", name)
                         : join_text(value, " (the ", name, ")");
  }

  // Only what failed furthest into the text tells where it leaves the grammar.
  void note(size_t position, const std::string& expected) {
    if (position < furthest_) return;
    if (position > furthest_) expected_.clear();
    furthest_ = position;
    if (std::ranges::find(expected_, expected) == expected_.end()) expected_.push_back(expected);
  }

  std::string reason() const {
    std::string list;
    for (const std::string& item : expected_) list += join_text(list.empty() ? "" : " or ", item);
    const std::string_view found = text_.substr(std::min(furthest_, text_.size()), 24);
    return join_text("expected ", list, ", found ",
                     found.empty() ? std::string("the end") : quoted(found));
  }

  const Grammar& grammar_ = grammar();
  std::string_view text_;
  Values values_;
  size_t furthest_ = 0;
  std::vector<std::string> expected_;
};

}  // namespace

StoryVerdict parse_story(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = std::min(text.find_first_not_of(kSpace), text.size());
  const size_t last = text.find_last_not_of(kSpace);
  const size_t length = last == text.npos ? 0 : last + 1 - first;
  StoryVerdict verdict = Parser(text.substr(first, length)).parse();
  verdict.position += first;
  return verdict;
}

}  // namespace brrr
