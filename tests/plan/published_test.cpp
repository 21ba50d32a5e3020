#include "brrr/plan/published/published.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace brrr {
namespace {

TEST(Published, EveryCaseIsInsideItsBand) {
  for (const plan::PublishedCase& c : plan::published_cases())
    EXPECT_TRUE(c.holds()) << c.id << ", " << c.what << ": published " << c.published << ", ours "
                           << c.predicted << ", " << 100 * c.error() << " %";
}

TEST(Published, AllThirtySixAreThere) {
  std::set<std::string> ids;
  for (const plan::PublishedCase& c : plan::published_cases()) ids.insert(c.id);
  for (int i = 1; i <= 36; ++i)
    EXPECT_TRUE(ids.contains(std::string(1, 'A').append(std::to_string(i)))) << i;
}

TEST(Published, WiderBandsNameTheirReason) {
  for (const plan::PublishedCase& c : plan::published_cases()) {
    const bool is_bound = c.kind == plan::CaseClass::bound;
    EXPECT_TRUE((!is_bound && c.band <= plan::usual_band(c.kind)) || !c.reason.empty())
        << c.id << ", " << c.what;
    EXPECT_FALSE(c.source.empty()) << c.id;
  }
}

// A prediction has the band of its class and no other: what misses it is a bound, and says so.
TEST(Published, NoPredictionHasABandOfItsOwn) {
  for (const plan::PublishedCase& c : plan::published_cases()) {
    if (c.kind == plan::CaseClass::predicted) {
      EXPECT_EQ(c.band, plan::usual_band(c.kind)) << c.id << ", " << c.what;
    }
  }
}

// A prediction that knows another run says which; arithmetic and bounds know none.
TEST(Published, CalibrationIsNamedAndCounted) {
  const std::vector<plan::PublishedCase> cases = plan::published_cases();
  int calibrated = 0;
  for (const plan::PublishedCase& c : cases) {
    if (c.calibration.empty()) continue;
    EXPECT_EQ(c.kind, plan::CaseClass::predicted) << c.id << ", " << c.what;
    ++calibrated;
  }
  EXPECT_EQ(plan::count(cases).calibrated, calibrated);
  for (const char* id : {"A1", "A15", "A18", "A19", "A20", "A22", "A31", "A32"}) {
    EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [&](const plan::PublishedCase& c) {
      return c.id == id && !c.calibration.empty();
    })) << id;
  }
}

TEST(Published, BoundsAreCountedApart) {
  std::vector<plan::PublishedCase> cases(5);
  cases[0] = {.published = 100, .predicted = 100.9};
  cases[1] = {.published = 100, .predicted = 101.5, .band = 0.02, .reason = "rounded"};
  cases[2] = {.published = 100, .predicted = 130, .kind = plan::CaseClass::bound};
  cases[3] = {.published = 100,
              .predicted = 130,
              .kind = plan::CaseClass::bound,
              .side = plan::Side::least};
  cases[4] = {.published = 100, .predicted = 84, .kind = plan::CaseClass::predicted, .band = 0.15};
  const plan::CaseCounts n = plan::count(cases);
  EXPECT_EQ(n.exact, 1);
  EXPECT_EQ(n.wider, 1);
  EXPECT_EQ(n.bounds, 1);
  EXPECT_EQ(n.outside, 2) << "a run that passes its limit, and a prediction that misses";
  EXPECT_NEAR(cases[2].reached(), 100 / 130.0, 1e-12);
}

}  // namespace
}  // namespace brrr
