#include "brrr/plan/fit/fit_price.h"

#include <algorithm>

namespace brrr::plan {
namespace {

constexpr int64_t kLongestDefaultSeq = 8192;

// Copies of a cut on all of `count` devices; 0 where there are none.
int64_t copies_on(const RunQuestion& question, const ParallelLayout& cut, int64_t count) {
  const bool splits_nodes = count > question.node_size && question.node_size % cut.tp != 0;
  return splits_nodes || count % devices_of(cut) != 0 ? 0 : count / devices_of(cut);
}

}  // namespace

PlanPricer::PlanPricer(const RunQuestion& question) : given_(question) {
  const ModelConfig& model = fit_model(given_);
  if (given_.seq == 0) given_.seq = std::min(kLongestDefaultSeq, context_of(model));
  given_.layout = {};
  const hardware::GpuSpec& gpu = hardware::find_gpu(given_.gpu);
  given_.gpu = gpu.name;
  room_bytes_ = static_cast<double>(gpu.memory.value());
  scratch_.question = given_;
  scratch_.params = static_cast<double>(parameter_count(model));
}

int64_t PlanPricer::batch_of(int64_t dp) const {
  return given_.global_batch > 0 ? given_.global_batch : choose_batch(given_, scratch_.params, dp);
}

const RunCost& PlanPricer::set(const FitCandidate& plan) {
  RunQuestion& q = scratch_.question;
  q.layout = plan.layout;
  q.recompute = plan.recompute;
  q.count = plan.count();
  q.global_batch = plan.global_batch;
  scratch_.dp = plan.dp;
  scratch_.micro_batches = plan.global_batch / (plan.dp * q.micro_batch);
  const auto [at, is_new] = costs_.try_emplace({plan.layout.tp, plan.layout.ep, plan.recompute});
  if (is_new) at->second = run_cost(q);
  return at->second;
}

std::optional<FitCandidate> PlanPricer::weigh(const ParallelLayout& layout, int64_t dp,
                                              compiler::RematPolicy recompute) {
  FitCandidate plan{
      .layout = layout, .recompute = recompute, .dp = dp, .global_batch = batch_of(dp)};
  const int64_t unit = dp * given_.micro_batch;
  if (plan.global_batch % unit != 0) return std::nullopt;
  if (layout.zero == 2 && plan.global_batch > unit) return std::nullopt;
  ++tried_;
  const RunCost& cost = set(plan);
  plan.memory_bytes = run_memory(scratch_.question, cost, plan.dp, scratch_.micro_batches).total();
  return plan;
}

void PlanPricer::time(FitCandidate& plan) {
  const RunCost& cost = set(plan);
  scratch_.traffic = run_traffic(scratch_.question, cost, plan.dp, scratch_.micro_batches);
  predict_step(scratch_, cost);
  plan.device_seconds = scratch_.step_seconds * static_cast<double>(plan.count()) /
                        static_cast<double>(plan.global_batch * given_.seq);
}

RunAnswer PlanPricer::confirm(const FitCandidate& plan) const {
  RunQuestion q = given_;
  q.layout = plan.layout;
  q.recompute = plan.recompute;
  q.count = plan.count();
  q.global_batch = plan.global_batch;
  return answer(q);
}

void FitChoice::offer(const FitCandidate& plan, double (*value)(const FitCandidate&)) {
  if (!best || value(plan) < value(*best)) {
    if (best && !best->has_layout_of(plan)) runner_up = best;
    best = plan;
  } else if (!best->has_layout_of(plan) && (!runner_up || value(plan) < value(*runner_up))) {
    runner_up = plan;
  }
}

std::optional<FitCandidate> leanest_plan(PlanPricer& pricer, int64_t count, int64_t cp) {
  const RunQuestion& question = pricer.question();
  std::optional<FitCandidate> leanest;
  const auto weigh_all = [&](compiler::RematPolicy policy) {
    for (const ParallelLayout& cut : possible_cuts(question, count)) {
      const int64_t dp = copies_on(question, cut, count);
      if (dp == 0 || (cp > 0 && cut.cp != cp)) continue;
      for (const ParallelLayout& layout : possible_shares(question, cut, dp)) {
        const std::optional<FitCandidate> plan = pricer.weigh(layout, dp, policy);
        if (plan && (!leanest || plan->memory_bytes < leanest->memory_bytes)) leanest = plan;
      }
    }
  };
  weigh_all(compiler::RematPolicy::full);
  if (!leanest || pricer.fits(*leanest) || leanest->memory_bytes > 1.1 * pricer.room_bytes())
    return leanest;
  weigh_all(compiler::RematPolicy::selective), weigh_all(compiler::RematPolicy::none);
  return leanest;
}

FitChoice quickest_plans(PlanPricer& pricer, int64_t count) {
  const RunQuestion& question = pricer.question();
  FitChoice choice;
  for (const ParallelLayout& cut : possible_cuts(question, count)) {
    const int64_t dp = copies_on(question, cut, count);
    if (dp == 0) continue;
    each_fitting_plan(pricer, cut, dp, [&](const FitCandidate& plan) {
      choice.offer(plan, [](const FitCandidate& p) { return p.token_seconds(); });
    });
  }
  return choice;
}

}  // namespace brrr::plan
