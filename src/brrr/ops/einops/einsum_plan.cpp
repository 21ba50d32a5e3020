// The order of meetings is found exactly for few operands (over all subsets of them) and greedily for
// many; its price is the number of multiply-adds.
#include "brrr/ops/einops/einsum_plan.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "brrr/base/error.h"
#include "brrr/ops/einops/einops_parse.h"

namespace brrr::einsum_plan {
namespace {

// ---- which pairs meet, in which order ------------------------------------------------------------

struct OrderCost {
  double flops = std::numeric_limits<double>::infinity(), elements = 0;  // elements break ties
  bool operator<(const OrderCost& other) const {
    return flops != other.flops ? flops < other.flops : elements < other.elements;
  }
  OrderCost operator+(const OrderCost& other) const {
    return {flops + other.flops, elements + other.elements};
  }
};

class OrderSearch {
 public:
  OrderSearch(const EinsumPlan& plan, std::string_view text) : plan_(plan), text_(text) {
    for (const Labels& labels : plan.operands) operands_.push_back(set_of(labels));
  }

  std::vector<Meeting> search() {
    constexpr size_t kMostExact = 8;  // 3^8 pairs of subsets
    if (operands_.size() < 2) return {};
    if (operands_.size() <= kMostExact) return exact();
    return greedy();
  }

 private:
  // A meeting multiplies for every value of all labels involved; what does not fit a tensor is out.
  OrderCost cost(LabelSet a, LabelSet b, LabelSet kept) const {
    if (count(kept) > kMaxRank) return {};
    return {2 * plan_.elements(a | b), plan_.elements(kept)};
  }
  [[noreturn]] void fail_rank() const {
    fail("einsum: every order has an intermediate of more than ", kMaxRank, " axes\n  ", text_);
  }

  // best[s]: the cheapest way to join the operands of subset s, from those of its two halves.
  std::vector<Meeting> exact() const {
    const size_t subsets = size_t{1} << operands_.size();
    std::vector<LabelSet> labels(subsets, 0);
    std::vector<OrderCost> best(subsets);
    std::vector<size_t> half(subsets, 0);
    for (size_t s = 1; s < subsets; ++s) labels[s] = needed_of(s);
    for (size_t s = 1; s < subsets; ++s) {
      if (std::has_single_bit(s)) best[s] = {0, 0};
      for (size_t a = (s - 1) & s; a > (s ^ a); a = (a - 1) & s) {
        const OrderCost total = best[a] + best[s ^ a] + cost(labels[a], labels[s ^ a], labels[s]);
        if (total < best[s]) best[s] = total, half[s] = a;
      }
    }
    if (half[subsets - 1] == 0) fail_rank();
    std::vector<Meeting> order;
    unroll(half, subsets - 1, order);
    return order;
  }

  LabelSet needed_of(size_t subset) const {
    LabelSet inside = 0, outside = set_of(plan_.output);
    for (size_t i = 0; i < operands_.size(); ++i)
      (subset >> i & 1 ? inside : outside) |= operands_[i];
    return inside & outside;
  }

  static int unroll(const std::vector<size_t>& half, size_t s, std::vector<Meeting>& order) {
    if (std::has_single_bit(s)) return std::countr_zero(s);
    const int a = unroll(half, half[s], order), b = unroll(half, s ^ half[s], order);
    order.push_back({std::min(a, b), std::max(a, b)});
    return std::min(a, b);
  }

  std::vector<Meeting> greedy() const {
    std::vector<LabelSet> terms = operands_;
    std::vector<int> alive;
    for (int i = 0; i < std::ssize(terms); ++i) alive.push_back(i);
    std::vector<Meeting> order;
    while (alive.size() > 1) {
      OrderCost best;
      Meeting chosen{-1, -1};
      LabelSet chosen_labels = 0;
      for (size_t i = 0; i < alive.size(); ++i) {
        for (size_t j = i + 1; j < alive.size(); ++j) {
          LabelSet outside = set_of(plan_.output);
          for (int other : alive) {
            if (other != alive[i] && other != alive[j])
              outside |= terms[static_cast<size_t>(other)];
          }
          const LabelSet a = terms[static_cast<size_t>(alive[i])],
                         b = terms[static_cast<size_t>(alive[j])], kept = (a | b) & outside;
          const OrderCost here = cost(a, b, kept);
          if (here < best) best = here, chosen = {alive[i], alive[j]}, chosen_labels = kept;
        }
      }
      if (chosen.a < 0) fail_rank();
      terms[static_cast<size_t>(chosen.a)] = chosen_labels;
      std::erase(alive, chosen.b);
      order.push_back(chosen);
    }
    return order;
  }

  const EinsumPlan& plan_;
  std::string_view text_;
  std::vector<LabelSet> operands_;
};

// ---- from the pattern and the shapes to the plan ---------------------------------------------------

class Planner {
 public:
  Planner(const Pattern& pattern, std::span<const Tensor> operands)
      : pattern_(pattern), operands_(operands) {}

  EinsumPlan plan() {
    for (size_t i = 0; i < operands_.size(); ++i) dots_ = std::max(dots_, count_dots(i));
    const size_t labels = pattern_.names.size() + static_cast<size_t>(dots_);
    check(labels <= kMostLabels, "einsum: ", labels, " different axes; at most ", kMostLabels,
          "\n  ", pattern_.text);
    plan_.sizes.assign(labels, -1);
    seen_in_.assign(labels, -1);
    for (size_t i = 0; i < operands_.size(); ++i) plan_.operands.push_back(label_axes(i));
    for (size_t i = 0; i < operands_.size(); ++i)
      drop_ones(plan_.operands[i], operands_[i].shape());
    label_output();
    // Labels of one operand alone are summed before anything meets; order and FLOPs know that.
    EinsumPlan summed = plan_;
    for (size_t i = 0; i < operands_.size(); ++i) drop_alone(summed.operands, i);
    plan_.order = OrderSearch(summed, pattern_.text).search();
    return std::move(plan_);
  }

 private:
  int count_dots(size_t operand) const {
    const PatternSide& side = pattern_.inputs[operand];
    const Shape& shape = operands_[operand].shape();
    const bool dots = has_dots(side);
    const int named = static_cast<int>(side.size()) - (dots ? 1 : 0);
    if (dots ? shape.size() < named : shape.size() != named) {
      TextRange at{pattern_.text.find("->"),
                   2};  // an operand without axes has no place in the text
      if (!side.empty())
        at = {side[0].at.position,
              side.back().at.position + side.back().at.length - side[0].at.position};
      fail_at(pattern_, at,
              join_text("operand ", operand, " has ", dots ? "at least " : "", named,
                        named == 1 ? " axis" : " axes", " here, and ", shape.size(),
                        " in its shape ", shape, blanks_hint(pattern_)));
    }
    return shape.size() - named;
  }

  Labels label_axes(size_t operand) {
    Labels labels;
    const Shape& shape = operands_[operand].shape();
    for (const PatternGroup& group : pattern_.inputs[operand]) {
      if (group.is_dots()) {
        const int here = count_dots(operand);  // aligned at the right
        for (int i = dots_ - here; i < dots_; ++i)
          add_label(labels, static_cast<int>(pattern_.names.size()) + i, shape, operand, group);
      } else {
        add_label(labels, group.axes[0].name, shape, operand, group);
      }
    }
    return labels;
  }

  void add_label(Labels& labels, int label, const Shape& shape, size_t operand,
                 const PatternGroup& group) {
    const int64_t size = shape[labels.size()];
    int64_t& known = plan_.sizes[static_cast<size_t>(label)];
    int& seen_in = seen_in_[static_cast<size_t>(label)];
    const bool broadcasts = group.is_dots() && (known == 1 || size == 1);
    if (known != -1 && known != size && !broadcasts)
      fail_at(pattern_, group.at,
              join_text(
                  group.is_dots() ? std::string("an axis of '...'")
                                  : join_text('"', pattern_.names[static_cast<size_t>(label)], '"'),
                  " is ", size, " in operand ", operand, ' ', shape, " and ", known, " in operand ",
                  seen_in, ' ', operands_[static_cast<size_t>(seen_in)].shape()));
    if (known == -1 || (broadcasts && known == 1))
      known = size, seen_in = static_cast<int>(operand);
    labels.push_back(label);
  }

  static void drop_ones(Labels& labels, const Shape& shape) {
    for (int axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 1) labels[axis] = kDropped;
    }
  }

  void label_output() {
    const auto add = [&](int label, const PatternGroup& group) {
      if (plan_.result.size() == kMaxRank)
        fail_at(pattern_, group.at, join_text("the result has more than ", kMaxRank, " axes"));
      plan_.result.push_back(plan_.sizes[static_cast<size_t>(label)]);
      if (plan_.result.back() != 1) plan_.output.push_back(label);
    };
    for (const PatternGroup& group : pattern_.output) {
      if (!group.is_dots()) add(group.axes[0].name, group);
      for (int i = 0; group.is_dots() && i < dots_; ++i)
        add(static_cast<int>(pattern_.names.size()) + i, group);
    }
  }

  void drop_alone(std::vector<Labels>& operands, size_t operand) const {
    LabelSet others = set_of(plan_.output);
    for (size_t i = 0; i < operands.size(); ++i)
      others |= i == operand ? 0 : set_of(plan_.operands[i]);
    for (int& label : operands[operand]) {
      if (label != kDropped && (others & bit(label)) == 0) label = kDropped;
    }
  }

  const Pattern& pattern_;
  std::span<const Tensor> operands_;
  EinsumPlan plan_;
  std::vector<int> seen_in_;  // the operand that gave a label its size
  int dots_ = 0;
};

// ---- the table of plans -----------------------------------------------------------------------------

struct PlanTable {
  static constexpr size_t kMostPlans = 4096;
  std::shared_mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const EinsumPlan>> all;
};

std::string plan_key(std::string_view text, std::span<const Tensor> operands) {
  std::string key(text);
  for (const Tensor& x : operands) {
    key += static_cast<char>(x.rank());
    key.append(reinterpret_cast<const char*>(x.shape().begin()),
               static_cast<size_t>(x.rank()) * sizeof(int64_t));
  }
  return key;
}

}  // namespace

std::shared_ptr<const EinsumPlan> find_plan(std::string_view text,
                                            std::span<const Tensor> operands) {
  static PlanTable table;
  std::string key = plan_key(text, operands);
  {
    const std::shared_lock lock(table.mutex);
    const auto found = table.all.find(key);
    if (found != table.all.end()) return found->second;
  }
  const auto pattern = find_pattern(PatternUse::einsum, text);
  check(operands.size() == pattern->inputs.size(), "einsum: the pattern has ",
        pattern->inputs.size(), " operands, and ", operands.size(), " are given\n  ", text);
  auto plan = std::make_shared<const EinsumPlan>(Planner(*pattern, operands).plan());
  const std::unique_lock lock(table.mutex);
  if (table.all.size() >= PlanTable::kMostPlans) table.all.clear();
  return table.all.emplace(std::move(key), std::move(plan)).first->second;
}

}  // namespace brrr::einsum_plan
