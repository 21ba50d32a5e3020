// The ladder: its kernels, peaks that no rung passes, factors and what causes have of them.
#include "brrr/plan/ladder/ladder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "brrr/ops/create/creation.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/random/random.h"
#include "brrr/plan/ladder/ladder_kernels.h"

namespace brrr {
namespace {

TEST(Ladder, EveryRungComputesTheProduct) {
  constexpr int64_t n = 240;  // of 48, and of no power of two
  const Tensor a = uniform({n, n}, RandomKey{.seed = 1}), b = uniform({n, n}, RandomKey{.seed = 2});
  const std::vector<float> expected = matmul(a, b).to_vector<float>();
  using Kernel = void (*)(const plan::ladder::Matrices&);
  std::vector<Kernel> kernels = {plan::ladder::naive,          plan::ladder::loop_order,
                                 plan::ladder::register_block, plan::ladder::wide_block,
                                 plan::ladder::packed,         plan::ladder::tiled};
  if (plan::ladder::has_simd())
    kernels.insert(kernels.end(), {plan::ladder::simd, plan::ladder::threaded});
  if (plan::ladder::has_wide_simd()) kernels.push_back(plan::ladder::wide_simd);
  for (size_t k = 0; k < kernels.size(); ++k) {
    const Tensor c = full({n, n}, -1.0);
    kernels[k]({a.data<float>(), b.data<float>(), c.data<float>(), n});
    const std::vector<float> found = c.to_vector<float>();
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], 1e-3) << "rung " << k;
  }
  EXPECT_NEAR(plan::ladder::boxed_products(1000), std::pow(1.0000001, 1000), 1e-9);
}

plan::Rung rung(const char* name, double rate, plan::Cause cause, int threads = 1,
                bool is_aside = false) {
  return {.name = name,
          .threads = threads,
          .cause = cause,
          .flops_per_second = rate,
          .is_aside = is_aside};
}

plan::Ladder some_ladder() {
  return {.peak_flops_per_second = 50,
          .gpu_peak_flops_per_second = 686e3,
          .rungs = {
              rung("Python", 1, plan::Cause::interpreter),
              rung("boxed", 2, plan::Cause::interpreter), rung("naive C", 20, plan::Cause::boxing),
              rung("detour", 10, plan::Cause::registers, 1, true),
              rung("missing", 0, plan::Cause::simd), rung("brrr", 100, plan::Cause::library, 2),
              rung("GPU naive", 1000, plan::Cause::device, 0),
              rung("cuBLASLt", 744e3, plan::Cause::library, 0, true),
              rung("brrr on the GPU", 740e3, plan::Cause::library, 0)}};
}

TEST(Ladder, NoRungIsAboveItsPeak) {
  plan::Ladder ladder = some_ladder();
  ladder.raise_peaks();
  EXPECT_EQ(ladder.peak_flops_per_second, 100) << "a rung of the processor";
  EXPECT_EQ(ladder.gpu_peak_flops_per_second, 744e3) << "a detour counts, too";
  for (const plan::Rung& each : ladder.rungs)
    EXPECT_LE(each.flops_per_second, ladder.peak_of(each)) << each.name;
  ladder.peak_flops_per_second = 1e6;
  ladder.raise_peaks();
  EXPECT_EQ(ladder.peak_flops_per_second, 1e6) << "a peak above all rungs stays";
}

TEST(Ladder, FactorsGoPastDetoursAndMissingRungs) {
  const plan::Ladder ladder = some_ladder();
  EXPECT_EQ(ladder.factor(0), 0);
  EXPECT_EQ(ladder.factor(2), 10);
  EXPECT_EQ(ladder.factor(3), 0.5);
  EXPECT_EQ(ladder.factor(5), 5) << "over naive C";
  EXPECT_EQ(ladder.factor(8), 740) << "over the naive kernel, not over cuBLASLt";
}

TEST(Ladder, CausesMultiplyToTheWholeWayAndNothingIsLeftOver) {
  const plan::Ladder ladder = some_ladder();
  double factor = 1, share = 0;
  for (const plan::CauseShare& each : ladder.shares()) {
    factor *= each.factor;
    share += each.share;
    EXPECT_FALSE(each.steps.empty());
    EXPECT_FALSE(plan::meaning(each.cause).empty());
    EXPECT_NE(each.cause, plan::Cause::registers) << "a detour has no share";
    if (each.cause == plan::Cause::library) {
      EXPECT_NEAR(each.factor, 5 * 740, 1e-9);
      EXPECT_EQ(each.steps, "naive C > brrr, GPU naive > brrr on the GPU");
    }
  }
  EXPECT_NEAR(factor, 740e3, 1e-3);
  EXPECT_NEAR(share, 1, 1e-12);
}

TEST(Ladder, ClaimsHoldWithinTheirOrders) {
  const std::vector<plan::LadderClaim> claims = some_ladder().claims();
  ASSERT_EQ(claims.size(), 3u);
  EXPECT_EQ(claims[0].verdict(), "less") << "20 times is 1.3 orders";
  EXPECT_EQ(claims[1].verdict(), "less");
  EXPECT_EQ(claims[2].verdict(), "holds");
  EXPECT_NEAR(claims[2].measured, std::log10(7400), 1e-12);
}

}  // namespace
}  // namespace brrr
