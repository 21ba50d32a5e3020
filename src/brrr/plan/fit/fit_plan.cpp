// How many devices: the fewest that hold a model, and the plan that ends in time for the least money.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "brrr/base/units.h"
#include "brrr/plan/fit/fit.h"
#include "brrr/plan/fit/fit_price.h"

namespace brrr::plan {
namespace {

constexpr double kDaySeconds = 86400;

std::string devices_text(int64_t count) {
  return fmt::format("{} device{}", with_commas(count), count == 1 ? "" : "s");
}

std::string text_of(const FitCandidate& plan) {
  return plan_text(plan.layout, plan.dp, plan.recompute);
}

// One way to share a cut out, for copies that grow: states shrink, so memory does not grow.
struct Sharing {
  ParallelLayout layout;
  compiler::RematPolicy recompute;
};

// Ways to share out a cut of which more than one device has the same part.
std::vector<Sharing> sharings_of(const RunQuestion& question, const ParallelLayout& cut) {
  const int64_t experts = shape_of(fit_model(question)).experts;
  std::vector<Sharing> sharings;
  for (const int64_t ep : divisors_of(std::max<int64_t>(1, experts))) {
    for (int zero = 1; zero <= 3; ++zero) {
      for (const compiler::RematPolicy policy : kFitPolicies) {
        ParallelLayout layout = cut;
        layout.ep = ep, layout.zero = zero;
        sharings.push_back({layout, policy});
      }
    }
  }
  return sharings;
}

class FewestSearch {
 public:
  FewestSearch(PlanPricer& pricer, int64_t least, int64_t most)
      : pricer_(pricer), least_(least), count_(most + 1) {}

  void add(const ParallelLayout& cut) {
    std::vector<int64_t> copies = possible_copies(pricer_.question(), cut, count_ - 1);
    std::erase_if(copies, [&](int64_t dp) { return devices_of(cut) * dp < least_; });
    if (!copies.empty() && copies.front() * cut.cp == 1) {
      for (const compiler::RematPolicy policy : kFitPolicies) {
        if (fits(cut, 1, policy)) count_ = devices_of(cut);
      }
      copies.erase(copies.begin());
    }
    for (const Sharing& sharing : sharings_of(pricer_.question(), cut)) add(sharing, copies);
  }
  int64_t count() const { return count_; }
  const std::optional<FitCandidate>& leanest() const { return leanest_; }

 private:
  bool fits(const ParallelLayout& layout, int64_t dp, compiler::RematPolicy policy) {
    const std::optional<FitCandidate> plan = pricer_.weigh(layout, dp, policy);
    if (!plan) return false;
    if (!leanest_ || plan->memory_bytes < leanest_->memory_bytes) leanest_ = plan;
    return pricer_.fits(*plan);
  }

  void add(const Sharing& sharing, std::vector<int64_t> copies) {
    const ParallelLayout& layout = sharing.layout;
    std::erase_if(copies, [&](int64_t dp) {
      return devices_of(layout) * dp >= count_ || dp * layout.cp % layout.ep != 0;
    });
    if (copies.empty() || !fits(layout, copies.back(), sharing.recompute)) return;
    size_t low = 0, high = copies.size() - 1;  // copies[high] fit, those before `low` do not
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (fits(layout, copies[middle], sharing.recompute))
        high = middle;
      else
        low = middle + 1;
    }
    count_ = devices_of(layout) * copies[high];
  }

  PlanPricer& pricer_;
  int64_t least_, count_;
  std::optional<FitCandidate> leanest_;
};

// The next count below that has a layout, for the reason why it is not the answer.
std::string why_no_fewer(PlanPricer& pricer, int64_t count) {
  if (count == 1) return "nothing: one device is enough";
  const int64_t node = pricer.question().node_size;
  for (int64_t fewer = count - 1; fewer >= std::max<int64_t>(1, count - 8 * node); --fewer) {
    if (!makes_nodes(fewer, node)) continue;
    const std::optional<FitCandidate> leanest = leanest_plan(pricer, fewer);
    if (leanest)
      return fmt::format("memory: on {} the leanest plan needs {:.1f} GB a device ({})",
                         devices_text(fewer), leanest->memory_bytes / 1e9, text_of(*leanest));
  }
  return "the batch: no smaller number of devices divides it";
}

bool is_round(int64_t dp) {
  while (dp % 2 == 0) dp /= 2;
  return dp <= 9 || dp == 15;
}

struct PlanSearch {
  FitChoice in_time, at_leisure, quickest;  // quickest and cheapest where days do not matter
};

PlanSearch search_plans(PlanPricer& pricer, double days, int64_t most) {
  const RunQuestion& q = pricer.question();
  const double scale = q.tokens / q.goodput / kDaySeconds;
  const bool is_open = q.global_batch == 0;
  const int64_t most_copies = std::max<int64_t>(1, pricer.batch_of(1) / q.micro_batch);
  PlanSearch found;
  for (const ParallelLayout& cut : possible_cuts(q, most)) {
    for (const int64_t dp : possible_copies(q, cut, most)) {
      if (is_open && (dp > most_copies || !is_round(dp))) continue;
      each_fitting_plan(pricer, cut, dp, [&](const FitCandidate& plan) {
        const auto cost = [](const FitCandidate& p) { return p.device_seconds; };
        found.at_leisure.offer(plan, cost);
        found.quickest.offer(plan, [](const FitCandidate& p) { return p.token_seconds(); });
        if (plan.token_seconds() * scale <= days) found.in_time.offer(plan, cost);
      });
    }
  }
  return found;
}

}  // namespace

FitResult fewest_devices(const RunQuestion& question, int64_t most) {
  PlanPricer pricer(question);
  const double states =
      static_cast<double>(parameter_count(fit_model(question))) *
      state_recipe(question.precision, question.optimizer, question.grads).total();
  const auto least = static_cast<int64_t>(std::ceil(states / pricer.room_bytes()));
  FewestSearch search(pricer, least, most);
  for (const ParallelLayout& cut : possible_cuts(pricer.question(), most)) search.add(cut);
  FitResult result;
  result.step = "one device within a node, then whole nodes";
  if (search.count() > most) {
    const std::optional<FitCandidate> leanest = search.leanest();
    result.binding =
        leanest ? fmt::format(
                      "memory: of up to {} the leanest plan needs {:.1f} GB a device, of "
                      "{:.1f} that it has ({} on {})",
                      devices_text(most), leanest->memory_bytes / 1e9, pricer.room_bytes() / 1e9,
                      text_of(*leanest), devices_text(leanest->count()))
                : fmt::format("memory: states of {:.1f} GB take {} and up to {} were asked for",
                              states / 1e9, devices_text(least), devices_text(most));
    result.tried = pricer.tried();
    return result;
  }
  const FitChoice choice = quickest_plans(pricer, search.count());
  if (!choice.best) fail("a plan that fitted is no longer found");
  const auto value = static_cast<double>(search.count());
  result.best = FitPlan{value, pricer.confirm(*choice.best)};
  if (choice.runner_up) result.runner_up = FitPlan{value, pricer.confirm(*choice.runner_up)};
  result.binding = why_no_fewer(pricer, search.count());
  result.tried = pricer.tried();
  return result;
}

FitResult cheapest_plan(const RunQuestion& question, double days, int64_t most) {
  check(days > 0, days, " days are no deadline");
  PlanPricer pricer(question);
  const PlanSearch found = search_plans(pricer, days, most);
  FitResult result;
  result.step = question.global_batch > 0 ? "every layout whose copies divide the global batch"
                                          : "dp of 1, 3, 5, 7, 9 or 15 times a power of two";
  result.tried = pricer.tried();
  const auto told = [&](const FitCandidate& plan) {
    RunAnswer a = pricer.confirm(plan);
    const double value = question.price_per_hour > 0 ? a.cost_usd : a.gpu_hours;
    return FitPlan{value, std::move(a)};
  };
  const auto described = [&](const FitCandidate& plan) {
    const RunAnswer a = pricer.confirm(plan);
    const std::string cost = question.price_per_hour > 0
                                 ? join_text("$", with_commas(std::llround(a.cost_usd)))
                                 : join_text(with_commas(std::llround(a.gpu_hours)), " GPU-hours");
    return fmt::format("{} ({}) take {:.1f} days and {}", devices_text(a.question.count),
                       text_of(plan), a.days, cost);
  };
  const std::optional<FitCandidate>&best = found.in_time.best, &leisurely = found.at_leisure.best,
        &quickest = found.quickest.best;
  if (best) {
    result.best = told(*best);
    if (found.in_time.runner_up) result.runner_up = told(*found.in_time.runner_up);
    if (leisurely && leisurely->device_seconds < best->device_seconds)
      result.binding = join_text("the deadline: ", described(*leisurely));
  } else if (quickest) {
    const double times =
        quickest->token_seconds() * question.tokens / question.goodput / kDaySeconds / days;
    result.binding =
        fmt::format("the deadline: the quickest plan of up to {} is {:.2f} times too slow: {}",
                    devices_text(most), times, described(*quickest));
  } else {
    FitResult fewest = fewest_devices(question, most);
    result.tried += fewest.tried;
    result.binding =
        fewest.best ? fmt::format("the batch: {} would hold the model, but no layout divides it",
                                  devices_text(std::llround(fewest.best->value)))
                    : fewest.binding;
  }
  return result;
}

}  // namespace brrr::plan
