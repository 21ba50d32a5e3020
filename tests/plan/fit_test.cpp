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
std::vector<plan::RunAnswer> all_answers(plan::RunQuestion q) {
  std::vector<plan::RunAnswer> answers;
  const int64_t layers = shape_of(*q.model).layers, seq = q.seq > 0 ? q.seq : 8192;
  for (int64_t tp = 1; tp <= 8; tp *= 2) {
    for (int64_t pp = 1; pp <= layers; ++pp) {
      for (int64_t cp = 1; cp == 1 || seq / cp >= 4096; cp *= 2) {
        if (q.count % (tp * pp * cp) != 0 || layers % pp != 0) continue;
        for (const int zero : {1, 3}) {
          for (int64_t interleave = 1; interleave <= (pp > 1 ? layers / pp : 1); ++interleave) {
            if (layers / pp % interleave != 0) continue;
            for (const compiler::RematPolicy policy :
                 {compiler::RematPolicy::none, compiler::RematPolicy::selective,
                  compiler::RematPolicy::full}) {
              q.layout = {.tp = tp, .pp = pp, .cp = cp, .zero = zero, .interleave = interleave};
              q.recompute = policy;
              try {
                answers.push_back(plan::answer(q));
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

bool any_fits(const plan::RunQuestion& q) {
  for (const plan::RunAnswer& a : all_answers(q)) {
    if (a.fits) return true;
  }
  return false;
}

void expect_same_as_train(const plan::FitPlan& plan) {
  const plan::RunAnswer again = plan::answer(plan.answer.question);
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
    plan::ParallelLayout layout;
    compiler::RematPolicy recompute;
  };
  const Case cases[] = {
      {"llama3-8b", 8, {.zero = 1}, compiler::RematPolicy::none},
      {"llama3-8b", 4, {.tp = 2, .pp = 4, .zero = 3, .interleave = 4}, compiler::RematPolicy::full},
      {"llama3-8b", 1, {.tp = 8, .cp = 2, .zero = 1}, compiler::RematPolicy::selective},
      {"mixtral-8x7b",
       16,
       {.tp = 2, .pp = 2, .ep = 8, .zero = 1},
       compiler::RematPolicy::selective},
      {"gpt2-1558m", 3, {.zero = 3}, compiler::RematPolicy::full}};
  for (const Case& each : cases) {
    plan::RunQuestion q = run_of(each.model, "h100", 1);
    if (each.dp == 1) q.optimizer = "muon", q.precision = compiler::Precision::fp8_mixed;
    plan::PlanPricer pricer(q);
    std::optional<plan::FitCandidate> plan = pricer.weigh(each.layout, each.dp, each.recompute);
    ASSERT_TRUE(plan.has_value());
    pricer.time(*plan);
    const plan::RunAnswer a = pricer.confirm(*plan);
    EXPECT_EQ(plan->memory_bytes, a.memory.total()) << each.model;
    EXPECT_EQ(pricer.fits(*plan), a.fits);
    EXPECT_NEAR(plan->token_seconds() * a.step_tokens, a.step_seconds, 1e-9 * a.step_seconds);
    q.count = plan->count(), q.layout = each.layout, q.recompute = each.recompute;
    EXPECT_EQ(plan::answer(q).question.global_batch, plan->global_batch)
        << "as a run chooses by itself";
  }
}

TEST(Fit, BuildsCountsFromLayouts) {
  const plan::RunQuestion q = run_of("llama3-405b", "h100", 1);  // 126 layers
  bool has_18_stages = false;
  for (const plan::ParallelLayout& cut : plan::possible_cuts(q, 16128)) {
    EXPECT_TRUE(126 % cut.pp == 0 || std::has_single_bit(static_cast<uint64_t>(cut.pp))) << cut.pp;
    EXPECT_LE(cut.tp, 8);
    if (cut.pp == 16) {
      EXPECT_THAT(plan::possible_interleaves(q, cut), testing::ElementsAre(1, 8));
    }
    if (cut.tp != 8 || cut.pp != 18 || cut.cp != 1) continue;
    has_18_stages = true;
    EXPECT_THAT(plan::possible_interleaves(q, cut), testing::ElementsAre(1, 7));
    EXPECT_THAT(plan::possible_copies(q, cut, 16128),
                testing::AllOf(testing::Contains(112), testing::Contains(64)));
  }
  EXPECT_TRUE(has_18_stages);
  plan::RunQuestion three =
      run_of("gpt2-124m", "h100", 1);  // 12 heads: three devices of a node share them
  std::vector<int64_t> degrees;
  for (const plan::ParallelLayout& cut : plan::possible_cuts(three, 8)) {
    if (cut.pp == 1) degrees.push_back(cut.tp);
    for (const int64_t dp : plan::possible_copies(three, cut, 64))
      EXPECT_TRUE(cut.tp * cut.pp * dp <= 8 || (cut.tp * cut.pp * dp % 8 == 0 && 8 % cut.tp == 0));
  }
  EXPECT_THAT(degrees, testing::ElementsAre(1, 2, 3, 4, 6));
}

// The run of Llama 3 405B, and a smaller one: both end in time, so the cheapest plan is no dearer.
TEST(Fit, FindsPlansOf126Layers) {
  plan::RunQuestion q = run_of("llama3-405b", "h100", 9216);
  q.tokens = 15.6e12, q.seq = 8192, q.global_batch = 2048, q.price_per_hour = 2;
  q.layout = {.tp = 8, .pp = 18, .zero = 1, .interleave = 7};
  q.recompute = compiler::RematPolicy::selective;
  const plan::RunAnswer known = plan::answer(q);
  ASSERT_TRUE(known.fits);
  const plan::FitResult open = plan::cheapest_plan(q, known.days + 0.1);
  ASSERT_TRUE(open.best.has_value()) << open.binding;
  EXPECT_LE(open.best->value, known.cost_usd);
  EXPECT_LE(open.best->answer.days, known.days + 0.1);
  EXPECT_THAT(open.binding, HasSubstr("the deadline: "));
  expect_same_as_train(*open.best);
  expect_same_as_train(*open.runner_up);
  EXPECT_GE(open.runner_up->value, open.best->value);

  q.global_batch = 2016;
  const plan::FitResult within = plan::cheapest_plan(q, 100, 16128);
  ASSERT_TRUE(within.best.has_value()) << within.binding;
  EXPECT_LE(within.best->answer.question.count, 16128);
  EXPECT_LE(within.best->answer.days, 100);
  const plan::FitResult fewer = plan::cheapest_plan(q, 100, 1024);
  EXPECT_FALSE(fewer.best.has_value());
  EXPECT_THAT(fewer.binding,
              testing::AllOf(HasSubstr("the quickest plan of up to 1,024 devices is"),
                             HasSubstr("times too slow"), HasSubstr("pp ")));
  const plan::FitResult none = plan::cheapest_plan(q, 100, 64);
  EXPECT_THAT(none.binding, HasSubstr("states of 6493.7 GB take 82 devices"));
}

TEST(Fit, NoPlanOfTheSpaceIsCheaper) {
  plan::RunQuestion q = run_of("llama3-8b", "h100", 8);
  q.global_batch = 64, q.seq = 8192, q.price_per_hour = 2;
  const double days = 80;
  const plan::FitResult found = plan::cheapest_plan(q, days, 16);
  ASSERT_TRUE(found.best.has_value()) << found.binding;
  double least = 1e30;
  for (const int64_t count : {1, 2, 3, 4, 5, 6, 7, 8, 16}) {
    q.count = count;
    for (const plan::RunAnswer& a : all_answers(q)) {
      if (a.fits && a.days <= days) least = std::min(least, a.cost_usd);
    }
  }
  EXPECT_NEAR(found.best->value, least, 1e-9 * least);
}

TEST(Fit, NoFewerDevicesHoldAModel) {
  plan::RunQuestion q = run_of("llama3-405b", "h100", 1);
  const plan::FitResult found = plan::fewest_devices(q);
  ASSERT_TRUE(found.best.has_value());
  expect_same_as_train(*found.best);
  const auto count = static_cast<int64_t>(found.best->value);
  EXPECT_EQ(found.best->answer.question.count, count);
  EXPECT_EQ(count % 8, 0);
  EXPECT_LT(count, 128) << "a power of two";
  EXPECT_THAT(found.binding, HasSubstr("the leanest plan needs"));
  for (q.count = 80; q.count < count; q.count += 8) EXPECT_FALSE(any_fits(q)) << q.count;

  q = run_of("llama3-8b", "h100", 1);
  const plan::FitResult small = plan::fewest_devices(q);
  ASSERT_TRUE(small.best.has_value());
  for (q.count = 1; q.count < static_cast<int64_t>(small.best->value); ++q.count)
    EXPECT_FALSE(any_fits(q)) << q.count;
  const plan::FitResult none = plan::fewest_devices(run_of("llama3-405b", "h100", 1), 88);
  EXPECT_FALSE(none.best.has_value());
  EXPECT_THAT(none.binding, HasSubstr("the leanest plan needs"));
}

TEST(Fit, NoLongerContextFits) {
  plan::RunQuestion q = run_of("llama3-8b", "h100", 8);
  const plan::FitResult found = plan::longest_context(q);
  ASSERT_TRUE(found.best.has_value());
  expect_same_as_train(*found.best);
  const auto length = static_cast<int64_t>(found.best->value);
  EXPECT_GT(length, 786432) << "what a grid of powers of two and one and a half found";
  EXPECT_THAT(found.binding, HasSubstr("memory: with "));
  for (const int64_t cp : {1, 2, 4, 8}) {
    q.seq = (length / (1024 * cp) + 1) * 1024 * cp;
    for (const plan::RunAnswer& a : all_answers(q))
      EXPECT_FALSE(a.fits && a.question.layout.cp == cp) << q.seq << " over " << cp;
  }
  EXPECT_EQ(plan::longest_context(run_of("gpt2-124m", "h100", 2)).best->value, 1024) << "its table";
}

TEST(Fit, NoLargerMicroBatchFits) {
  plan::RunQuestion q = run_of("llama3-8b", "h100", 8);
  q.seq = 2048;
  const plan::FitResult found = plan::largest_batch(q);
  ASSERT_TRUE(found.best.has_value());
  expect_same_as_train(*found.best);
  q.micro_batch = static_cast<int64_t>(found.best->value) + 1;
  EXPECT_FALSE(any_fits(q));
  q.micro_batch = 1, q.global_batch = 96;
  const plan::FitResult divided = plan::largest_batch(q);
  ASSERT_TRUE(divided.best.has_value());
  EXPECT_EQ(96 % static_cast<int64_t>(divided.best->value), 0);
  EXPECT_EQ(divided.best->answer.question.global_batch, 96);
}

TEST(Fit, NoLargerModelFits) {
  plan::RunQuestion q;
  q.tokens = 1e9;
  q.gpu = "h100", q.count = 8;
  const plan::FitResult found = plan::largest_model(q);
  ASSERT_TRUE(found.best.has_value());
  expect_same_as_train(*found.best);
  EXPECT_LT(found.best->value, plan::largest_model_by_states(q));
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
  plan::RunQuestion q = run_of("gpt2-124m", "h100", 1);
  const plan::FitResult one = plan::fewest_devices(q);
  ASSERT_TRUE(one.best.has_value());
  EXPECT_EQ(one.best->value, 1);
  EXPECT_THAT(one.binding, HasSubstr("one device is enough"));
  q.micro_batch = 3, q.global_batch = 8;
  EXPECT_THROW(plan::cheapest_plan(q, 10), Error);
  EXPECT_THROW(plan::cheapest_plan(run_of("gpt2-124m", "h100", 1), 0), Error);
}

}  // namespace
}  // namespace brrr
