// Answers of `fit` are held against `answer`, layout by layout: they fit, and nothing better does.
#include "brrr/plan/fit/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "brrr/plan/fit/fit_price.h"
#include "plan/run_of.h"

namespace brrr {
namespace {

using testing::HasSubstr;

// Layouts of q.count devices, written down without the search: what `answer` refuses is none.
std::vector<RunAnswer> all_answers(RunQuestion q) {
  std::vector<RunAnswer> answers;
  const int64_t layers = shape_of(*q.model).layers, seq = q.seq > 0 ? q.seq : 8192;
  for (int64_t tp = 1; tp <= 8; tp *= 2) {
    for (int64_t pp = 1; pp <= layers; ++pp) {
      for (int64_t cp = 1; cp == 1 || seq / cp >= 4096; cp *= 2) {
        if (q.count % (tp * pp * cp) != 0 || layers % pp != 0) continue;
        for (const int zero : {1, 3}) {
          for (int64_t interleave = 1; interleave <= (pp > 1 ? layers / pp : 1); ++interleave) {
            if (layers / pp % interleave != 0) continue;
            for (const RematPolicy policy :
                 {RematPolicy::none, RematPolicy::selective, RematPolicy::full}) {
              q.layout = {.tp = tp, .pp = pp, .cp = cp, .zero = zero, .interleave = interleave};
              q.recompute = policy;
              try {
                answers.push_back(answer(q));
              } catch (const Error&) {
                continue;  // no such layout of this model
              }
            }
          }
        }
      }
    }
  }
  return answers;
}

bool any_fits(const RunQuestion& q) {
  for (const RunAnswer& a : all_answers(q)) {
    if (a.fits) return true;
  }
  return false;
}

void expect_same_as_train(const FitPlan& plan) {
  const RunAnswer again = answer(plan.answer.question);
  EXPECT_TRUE(plan.answer.fits);
  EXPECT_TRUE(again.fits);
  EXPECT_EQ(again.days, plan.answer.days);
  EXPECT_EQ(again.cost_usd, plan.answer.cost_usd);
  EXPECT_EQ(again.memory.total(), plan.answer.memory.total());
}

TEST(Fit, PricesPlansAsAnswersDo) {
  struct Case {
    const char* model;
    int64_t dp;
    ParallelLayout layout;
    RematPolicy recompute;
  };
  const Case cases[] = {
      {"llama3-8b", 8, {.zero = 1}, RematPolicy::none},
      {"llama3-8b", 4, {.tp = 2, .pp = 4, .zero = 3, .interleave = 4}, RematPolicy::full},
      {"llama3-8b", 1, {.tp = 8, .cp = 2, .zero = 1}, RematPolicy::selective},
      {"mixtral-8x7b", 16, {.tp = 2, .pp = 2, .ep = 8, .zero = 1}, RematPolicy::selective},
      {"gpt2-1558m", 3, {.zero = 3}, RematPolicy::full}};
  for (const Case& each : cases) {
    RunQuestion q = run_of(each.model, "h100", 1);
    if (each.dp == 1) q.optimizer = "muon", q.precision = Precision::fp8_mixed;
    PlanPricer pricer(q);
    std::optional<FitCandidate> plan = pricer.weigh(each.layout, each.dp, each.recompute);
    ASSERT_TRUE(plan.has_value());
    pricer.time(*plan);
    const RunAnswer a = pricer.confirm(*plan);
    EXPECT_EQ(plan->memory_bytes, a.memory.total()) << each.model;
    EXPECT_EQ(pricer.fits(*plan), a.fits);
    EXPECT_NEAR(plan->token_seconds() * a.step_tokens, a.step_seconds, 1e-9 * a.step_seconds);
    q.count = plan->count(), q.layout = each.layout, q.recompute = each.recompute;
    EXPECT_EQ(answer(q).question.global_batch, plan->global_batch) << "as a run chooses by itself";
  }
}

TEST(Fit, BuildsCountsFromLayouts) {
  const RunQuestion q = run_of("llama3-405b", "h100", 1);  // 126 layers
  bool has_18_stages = false;
  for (const ParallelLayout& cut : possible_cuts(q, 16128)) {
    EXPECT_TRUE(126 % cut.pp == 0 || std::has_single_bit(static_cast<uint64_t>(cut.pp))) << cut.pp;
    EXPECT_LE(cut.tp, 8);
    if (cut.pp == 16) {
      EXPECT_THAT(possible_interleaves(q, cut), testing::ElementsAre(1, 8));
    }
    if (cut.tp != 8 || cut.pp != 18 || cut.cp != 1) continue;
    has_18_stages = true;
    EXPECT_THAT(possible_interleaves(q, cut), testing::ElementsAre(1, 7));
    EXPECT_THAT(possible_copies(q, cut, 16128),
                testing::AllOf(testing::Contains(112), testing::Contains(64)));
  }
  EXPECT_TRUE(has_18_stages);
  RunQuestion three =
      run_of("gpt2-124m", "h100", 1);  // 12 heads: three devices of a node share them
  std::vector<int64_t> degrees;
  for (const ParallelLayout& cut : possible_cuts(three, 8)) {
    if (cut.pp == 1) degrees.push_back(cut.tp);
    for (const int64_t dp : possible_copies(three, cut, 64))
      EXPECT_TRUE(cut.tp * cut.pp * dp <= 8 || (cut.tp * cut.pp * dp % 8 == 0 && 8 % cut.tp == 0));
  }
  EXPECT_THAT(degrees, testing::ElementsAre(1, 2, 3, 4, 6));
}

// The run of Llama 3 405B, and a smaller one: both end in time, so the cheapest plan is no dearer.
TEST(Fit, FindsPlansOf126Layers) {
  RunQuestion q = run_of("llama3-405b", "h100", 9216);
  q.tokens = 15.6e12, q.seq = 8192, q.global_batch = 2048, q.price_per_hour = 2;
  q.layout = {.tp = 8, .pp = 18, .zero = 1, .interleave = 7};
  q.recompute = RematPolicy::selective;
  const RunAnswer known = answer(q);
  ASSERT_TRUE(known.fits);
  const FitResult open = cheapest_plan(q, known.days + 0.1);
  ASSERT_TRUE(open.best.has_value()) << open.binding;
  EXPECT_LE(open.best->value, known.cost_usd);
  EXPECT_LE(open.best->answer.days, known.days + 0.1);
  EXPECT_THAT(open.binding, HasSubstr("the deadline: "));
  expect_same_as_train(*open.best);
  expect_same_as_train(*open.runner_up);
  EXPECT_GE(open.runner_up->value, open.best->value);

  q.global_batch = 2016;
  const FitResult within = cheapest_plan(q, 100, 16128);
  ASSERT_TRUE(within.best.has_value()) << within.binding;
  EXPECT_LE(within.best->answer.question.count, 16128);
  EXPECT_LE(within.best->answer.days, 100);
  const FitResult fewer = cheapest_plan(q, 100, 1024);
  EXPECT_FALSE(fewer.best.has_value());
  EXPECT_THAT(fewer.binding,
              testing::AllOf(HasSubstr("the quickest plan of up to 1,024 devices is"),
                             HasSubstr("times too slow"), HasSubstr("pp ")));
  const FitResult none = cheapest_plan(q, 100, 64);
  EXPECT_THAT(none.binding, HasSubstr("states of 6493.7 GB take 82 devices"));
}

TEST(Fit, NoPlanOfTheSpaceIsCheaper) {
  RunQuestion q = run_of("llama3-8b", "h100", 8);
  q.global_batch = 64, q.seq = 8192, q.price_per_hour = 2;
  const double days = 80;
  const FitResult found = cheapest_plan(q, days, 16);
  ASSERT_TRUE(found.best.has_value()) << found.binding;
  double least = 1e30;
  for (const int64_t count : {1, 2, 3, 4, 5, 6, 7, 8, 16}) {
    q.count = count;
    for (const RunAnswer& a : all_answers(q)) {
      if (a.fits && a.days <= days) least = std::min(least, a.cost_usd);
    }
  }
  EXPECT_NEAR(found.best->value, least, 1e-9 * least);
}

TEST(Fit, NoFewerDevicesHoldAModel) {
  RunQuestion q = run_of("llama3-405b", "h100", 1);
  const FitResult found = fewest_devices(q);
  ASSERT_TRUE(found.best.has_value());
  expect_same_as_train(*found.best);
  const auto count = static_cast<int64_t>(found.best->value);
  EXPECT_EQ(found.best->answer.question.count, count);
  EXPECT_EQ(count % 8, 0);
  EXPECT_LT(count, 128) << "a power of two";
  EXPECT_THAT(found.binding, HasSubstr("the leanest plan needs"));
  for (q.count = 80; q.count < count; q.count += 8) EXPECT_FALSE(any_fits(q)) << q.count;

  q = run_of("llama3-8b", "h100", 1);
  const FitResult small = fewest_devices(q);
  ASSERT_TRUE(small.best.has_value());
  for (q.count = 1; q.count < static_cast<int64_t>(small.best->value); ++q.count)
    EXPECT_FALSE(any_fits(q)) << q.count;
  const FitResult none = fewest_devices(run_of("llama3-405b", "h100", 1), 88);
  EXPECT_FALSE(none.best.has_value());
  EXPECT_THAT(none.binding, HasSubstr("the leanest plan needs"));
}

TEST(Fit, NoLongerContextFits) {
  RunQuestion q = run_of("llama3-8b", "h100", 8);
  const FitResult found = longest_context(q);
  ASSERT_TRUE(found.best.has_value());
  expect_same_as_train(*found.best);
  const auto length = static_cast<int64_t>(found.best->value);
  EXPECT_GT(length, 786432) << "what a grid of powers of two and one and a half found";
  EXPECT_THAT(found.binding, HasSubstr("memory: with "));
  for (const int64_t cp : {1, 2, 4, 8}) {
    q.seq = (length / (1024 * cp) + 1) * 1024 * cp;
    for (const RunAnswer& a : all_answers(q))
      EXPECT_FALSE(a.fits && a.question.layout.cp == cp) << q.seq << " over " << cp;
  }
  EXPECT_EQ(longest_context(run_of("gpt2-124m", "h100", 2)).best->value, 1024) << "its table";
}

TEST(Fit, NoLargerMicroBatchFits) {
  RunQuestion q = run_of("llama3-8b", "h100", 8);
  q.seq = 2048;
  const FitResult found = largest_batch(q);
  ASSERT_TRUE(found.best.has_value());
  expect_same_as_train(*found.best);
  q.micro_batch = static_cast<int64_t>(found.best->value) + 1;
  EXPECT_FALSE(any_fits(q));
  q.micro_batch = 1, q.global_batch = 96;
  const FitResult divided = largest_batch(q);
  ASSERT_TRUE(divided.best.has_value());
  EXPECT_EQ(96 % static_cast<int64_t>(divided.best->value), 0);
  EXPECT_EQ(divided.best->answer.question.global_batch, 96);
}

TEST(Fit, NoLargerModelFits) {
  RunQuestion q;
  q.tokens = 1e9;
  q.gpu = "h100", q.count = 8;
  const FitResult found = largest_model(q);
  ASSERT_TRUE(found.best.has_value());
  expect_same_as_train(*found.best);
  EXPECT_LT(found.best->value, largest_model_by_states(q));
  q.seq = 4096;
  auto larger = found.best->answer.question.model->get<LlamaConfig>();
  for (int more = 0; more < 4; ++more) {
    ++larger.layers, ++larger.heads, ++larger.kv_heads, larger.width += 128;
    larger.hidden = (8 * larger.width / 3 + 1023) / 1024 * 1024;
    q.model = larger;
    EXPECT_FALSE(any_fits(q)) << larger.layers;
  }
}

TEST(Fit, SayWhenSomethingElseBinds) {
  RunQuestion q = run_of("gpt2-124m", "h100", 1);
  const FitResult one = fewest_devices(q);
  ASSERT_TRUE(one.best.has_value());
  EXPECT_EQ(one.best->value, 1);
  EXPECT_THAT(one.binding, HasSubstr("one device is enough"));
  q.micro_batch = 3, q.global_batch = 8;
  EXPECT_THROW(cheapest_plan(q, 10), Error);
  EXPECT_THROW(cheapest_plan(run_of("gpt2-124m", "h100", 1), 0), Error);
}

}  // namespace
}  // namespace brrr
