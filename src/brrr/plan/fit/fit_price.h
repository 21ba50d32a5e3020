// Prices of many plans of one model, sequence and micro-batch. Tracing the model is what an answer takes long for, so
// it is traced once for each tp, ep and policy; a plan then takes microseconds. What is told to people is `answer`'s.
#pragma once

#include <map>
#include <tuple>

#include "brrr/plan/fit/fit_space.h"

namespace brrr::plan {

struct FitCandidate {
  ParallelLayout layout;
  compiler::RematPolicy recompute = compiler::RematPolicy::none;
  int64_t dp = 1, global_batch = 1;
  double memory_bytes = 0;
  double device_seconds = 0;  // of all devices together, for one token
  int64_t count() const { return devices_of(layout) * dp; }
  double token_seconds() const { return device_seconds / static_cast<double>(count()); }
  bool has_layout_of(const FitCandidate& other) const {
    const ParallelLayout &a = layout, &b = other.layout;
    return a.tp == b.tp && a.pp == b.pp && a.cp == b.cp && a.ep == b.ep && dp == other.dp;
  }
};

class PlanPricer {
 public:
  explicit PlanPricer(const RunQuestion& question);

  // As given, with seq chosen where it was open.
  const RunQuestion& question() const { return given_; }
  double room_bytes() const { return room_bytes_; }
  bool fits(const FitCandidate& plan) const { return plan.memory_bytes <= room_bytes_; }
  // Sequences that the run would take of itself where no batch is given.
  int64_t batch_of(int64_t dp) const;

  // The memory of a plan; nothing where it does not divide the global batch, or would send gradients with every
  // micro-batch (ZeRO-2).
  std::optional<FitCandidate> weigh(const ParallelLayout& layout, int64_t dp,
                                    compiler::RematPolicy recompute);
  void time(FitCandidate& plan);
  RunAnswer confirm(const FitCandidate& plan) const;
  int64_t tried() const { return tried_; }

 private:
  const RunCost& set(const FitCandidate& plan);

  RunQuestion given_;
  RunAnswer scratch_;
  double room_bytes_ = 0;
  std::map<std::tuple<int64_t, int64_t, compiler::RematPolicy>, RunCost> costs_;  // by tp, ep
  int64_t tried_ = 0;
};

// The best and the next one with another layout.
struct FitChoice {
  std::optional<FitCandidate> best, runner_up;
  void offer(const FitCandidate& plan, double (*value)(const FitCandidate&));
};

// Calls `see` with every plan of `copies` of a cut that fits, timed: of ways to compute again the first that fits,
// since the others take longer, and ZeRO-2 only where ZeRO-1 does not fit.
template <class See>
void each_fitting_plan(PlanPricer& pricer, const ParallelLayout& cut, int64_t dp, const See& see) {
  const std::vector<int64_t> stages = possible_interleaves(pricer.question(), cut);
  for (const int64_t interleave : stages) {
    bool first_stage_fits = false;
    for (ParallelLayout layout : possible_shares(pricer.question(), cut, dp)) {
      if (layout.zero <= 1) first_stage_fits = false;
      if (layout.zero == 2 && first_stage_fits) continue;
      layout.interleave = interleave;
      for (const compiler::RematPolicy policy : kFitPolicies) {
        std::optional<FitCandidate> plan = pricer.weigh(layout, dp, policy);
        if (!plan || !pricer.fits(*plan)) continue;
        first_stage_fits =
            first_stage_fits || (layout.zero == 1 && policy == compiler::RematPolicy::none);
        pricer.time(*plan);
        see(*plan);
        break;
      }
    }
  }
}

// The plan of `count` devices that needs least memory, of one cp where that is not 0; nothing where no layout has so
// many. Virtual stages only add memory and are left out. Keeping more takes more, but for what is alive beside it, so
// the ways to compute again that keep more are weighed only where full recomputation misses by a tenth or less.
std::optional<FitCandidate> leanest_plan(PlanPricer& pricer, int64_t count, int64_t cp = 0);
// The quickest that fit.
FitChoice quickest_plans(PlanPricer& pricer, int64_t count);

}  // namespace brrr::plan
