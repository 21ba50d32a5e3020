#include "brrr/compiler/remat/remat_budget.h"

#include <algorithm>
#include <numeric>

#include "brrr/compiler/lower/peak_holders.h"
#include "brrr/compiler/remat/remat_rewrite.h"

namespace brrr::compiler {
namespace {

constexpr double kHighestPrice = 1e-5;  // seconds for a byte: no contraction is worth its result
constexpr size_t kMostCuts = 64;
constexpr int kMostGivenBack = 16;
constexpr int kHoldersNamed = 5;

struct Choice {
  NodeSet again;
  ChoiceTotals totals;
  int64_t arena_bytes = -1;  // not planned yet
};

class BudgetSearch {
 public:
  BudgetSearch(const BudgetProblem& problem, int64_t budget_bytes)
      : graph_(problem.graph),
        parts_(problem.parts),
        costs_(problem.costs),
        planner_(problem.planner),
        budget_(budget_bytes) {}

  NodeSet run() {
    cuts_ = {choose(0)};
    if (fits(cuts_[0])) return cuts_[0].again;
    add_cuts_up_to(choose(kHighestPrice));
    const size_t first = first_that_fits();
    if (first == cuts_.size()) return segments_or_refuse();
    Choice chosen = switch_one_by_one(cuts_[first - 1], cuts_[first]);
    give_back(chosen);
    return chosen.again;
  }

 private:
  Choice make(NodeSet again) const {
    again = only_asked_for(graph_, parts_, std::move(again));
    const ChoiceTotals totals = totals_of(graph_, parts_, costs_, again);
    return {.again = std::move(again), .totals = totals};
  }
  Choice choose(double price) const { return make(cheapest_choice(graph_, parts_, costs_, price)); }

  int64_t planned(Choice& choice) const {
    if (choice.arena_bytes < 0)
      choice.arena_bytes = planner_(run_again(graph_, parts_, choice.again)).memory.arena_bytes;
    return choice.arena_bytes;
  }
  bool fits(Choice& choice) const { return planned(choice) <= budget_; }

  // All cuts that are the cheapest at some price, from the fastest to the smallest. Two neighbours are
  // equally good at one price; a cut that is better there lies between them.
  void add_cuts_up_to(Choice smallest) {
    std::vector<Choice> behind{std::move(smallest)};  // the next one last
    while (!behind.empty()) {
      const ChoiceTotals &low = cuts_.back().totals, &high = behind.back().totals;
      const auto bytes = static_cast<double>(low.kept_bytes - high.kept_bytes);
      if (bytes <= 0) {  // the same cut
        behind.pop_back();
        continue;
      }
      Choice between = choose((high.seconds - low.seconds) / bytes);
      const bool is_new = between.totals.kept_bytes < low.kept_bytes &&
                          between.totals.kept_bytes > high.kept_bytes &&
                          cuts_.size() + behind.size() < kMostCuts;
      if (is_new) {
        behind.push_back(std::move(between));
      } else {
        cuts_.push_back(std::move(behind.back()));
        behind.pop_back();
      }
    }
  }

  // By bisection. What is kept less may yet live longer, so where even the last cut is too large, all are
  // looked at.
  size_t first_that_fits() {
    if (!fits(cuts_.back())) {
      size_t i = 1;
      while (i < cuts_.size() && !fits(cuts_[i])) ++i;
      return i;
    }
    size_t low = 0, high = cuts_.size() - 1;
    while (high - low > 1) {
      const size_t middle = (low + high) / 2;
      (fits(cuts_[middle]) ? high : low) = middle;
    }
    return high;
  }

  // The nodes that two choices disagree about, in groups that belong together: neighbours of one layer.
  std::vector<std::vector<size_t>> differences(const NodeSet& a, const NodeSet& b) const {
    std::vector<size_t> root(graph_.nodes.size());
    std::iota(root.begin(), root.end(), 0);
    const auto find = [&](size_t n) {
      while (root[n] != n) n = root[n] = root[root[n]];
      return n;
    };
    const auto layer = [&](size_t n) { return outermost_segment(graph_, graph_.nodes[n].segment); };
    for (size_t n = 0; n < root.size(); ++n) {
      if (a[n] == b[n]) continue;
      for (ValueId id : graph_.nodes[n].inputs) {
        const NodeId maker = graph_.value(id).node;
        if (!maker.valid() || a[maker.index()] == b[maker.index()]) continue;
        if (layer(maker.index()) == layer(n)) root[find(maker.index())] = find(n);
      }
    }
    std::vector<std::vector<size_t>> groups(root.size());
    for (size_t n = 0; n < root.size(); ++n) {
      if (a[n] != b[n]) groups[find(n)].push_back(n);
    }
    std::erase_if(groups, [](const std::vector<size_t>& group) { return group.empty(); });
    return groups;
  }

  static NodeSet toggled(NodeSet again, const std::vector<size_t>& nodes) {
    for (size_t n : nodes) again[n] = !again[n];
    return again;
  }

  Choice switch_one_by_one(Choice& large, const Choice& small) {
    struct Switch {
      std::vector<size_t> nodes;
      double seconds_per_byte;
    };
    std::vector<Switch> switches;
    for (std::vector<size_t>& nodes : differences(large.again, small.again)) {
      Choice alone = make(toggled(large.again, nodes));
      const auto freed = static_cast<double>(planned(large) - planned(alone));
      const double seconds = alone.totals.seconds - large.totals.seconds;
      switches.push_back({std::move(nodes), freed > 0 ? seconds / freed : kHighestPrice});
    }
    std::stable_sort(switches.begin(), switches.end(), [](const Switch& a, const Switch& b) {
      return a.seconds_per_byte < b.seconds_per_byte;
    });
    // The shortest beginning of the list that fits; all of it does.
    size_t too_few = 0, enough = switches.size();
    Choice best = small;
    while (enough - too_few > 1) {
      const size_t middle = (too_few + enough) / 2;
      NodeSet again = large.again;
      for (size_t i = 0; i < middle; ++i) again = toggled(std::move(again), switches[i].nodes);
      Choice tried = make(std::move(again));
      const bool good = fits(tried);
      (good ? enough : too_few) = middle;
      if (good) best = std::move(tried);
    }
    return best;
  }

  // A price asks for bytes wherever they are, also where the peak is not: contractions that need not run
  // again after all are kept, the dearest first.
  void give_back(Choice& choice) const {
    std::vector<size_t> dearest;
    for (size_t n = 0; n < choice.again.size(); ++n) {
      const bool is_dear = graph_.nodes[n].op->kind == OpKind::contraction;
      if (choice.again[n] && !cuts_[0].again[n] && is_dear) dearest.push_back(n);
    }
    std::stable_sort(dearest.begin(), dearest.end(), [&](size_t a, size_t b) {
      return costs_.again_seconds[a] > costs_.again_seconds[b];
    });
    int tries = 0;
    for (size_t n : dearest) {
      if (tries++ == kMostGivenBack) return;
      Choice tried = make(toggled(choice.again, {n}));
      if (fits(tried)) choice = std::move(tried);
    }
  }

  NodeSet segments_or_refuse() {
    Choice* smallest = &cuts_[0];
    for (Choice& cut : cuts_) {
      if (planned(cut) < planned(*smallest)) smallest = &cut;
    }
    Choice by_segment = make(choice_by_segment(graph_, parts_));
    if (planned(by_segment) < planned(*smallest)) smallest = &by_segment;
    if (fits(*smallest)) return smallest->again;
    const Graph rewritten = run_again(graph_, parts_, smallest->again);
    fail("a memory budget of ", Bytes(budget_), " (", with_commas(budget_),
         " B) is too small for this program: it needs at least ", Bytes(smallest->arena_bytes),
         " (", with_commas(smallest->arena_bytes), " B), all recomputation done. ",
         describe_peak(rewritten, planner_(rewritten), kHoldersNamed),
         "; give that much, or make the batch or the sequence smaller");
  }

  const Graph& graph_;
  const StepParts& parts_;
  const CutCosts& costs_;
  const GraphPlanner& planner_;
  int64_t budget_;
  std::vector<Choice> cuts_;
};

}  // namespace

NodeSet fit_budget(const BudgetProblem& problem, Bytes budget) {
  return BudgetSearch(problem, budget.value()).run();
}

NodeSet choice_by_segment(const Graph& graph, const StepParts& parts) {
  NodeSet again(graph.nodes.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const SegmentId layer = outermost_segment(graph, node.segment);
    again[n] = parts.forward_nodes[n] && layer.valid() &&
               std::all_of(node.outputs.begin(), node.outputs.end(),
                           [&](ValueId id) { return is_inner(graph, parts, id, layer); });
  }
  return only_asked_for(graph, parts, std::move(again));
}

}  // namespace brrr::compiler
