#include "brrr/report/claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace brrr {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Claims, HoldUntilOneDoesNot) {
  report::Claims claims("Sizes");
  claims.equal("elements", 32, 32);
  claims.equal("bytes", 128_B, 128_B);
  EXPECT_TRUE(claims.all_hold());
  EXPECT_THAT(claims.text(), Not(HasSubstr("✗")));
  claims.equal("bytes again", 127_B, 128_B);
  EXPECT_FALSE(claims.all_hold());
  EXPECT_EQ(claims.broken(), 1);
  EXPECT_THAT(claims.text(), HasSubstr("✗"));
  EXPECT_THAT(claims.text(), HasSubstr("1 of these"));
}

TEST(Claims, ShowBothValues) {
  report::Claims claims("Flops");
  claims.equal("y = x @ w", 33'554'431, 33'554'432);
  EXPECT_THAT(claims.text(), HasSubstr("33,554,432"));
  EXPECT_THAT(claims.text(), HasSubstr("33,554,431"));
}

TEST(Claims, NearIsRelativeAndNanIsNeverNear) {
  report::Claims claims("");
  claims.near("a", 143.9266, 143.927, 1e-5);
  claims.near("time", Seconds(8.8890e-3), Seconds(8.889e-3), 1e-6);
  claims.near("zero", 0.0, 0.0);
  EXPECT_TRUE(claims.all_hold());
  claims.near("b", 143.9, 143.927, 1e-5);
  claims.near("c", NAN, 1.0);
  claims.holds("d", "no", false);
  EXPECT_EQ(claims.broken(), 3);
}

}  // namespace
}  // namespace brrr
