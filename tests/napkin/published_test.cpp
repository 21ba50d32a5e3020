#include "brrr/napkin/published.h"

#include <gtest/gtest.h>

#include <set>

namespace brrr {
namespace {

TEST(Published, EveryCaseIsInsideItsBand) {
  for (const PublishedCase& c : published_cases())
    EXPECT_TRUE(c.holds()) << c.id << ", " << c.what << ": published " << c.published << ", ours "
                           << c.predicted << ", " << 100 * c.error() << " %";
}

TEST(Published, AllThirtySixAreThere) {
  std::set<std::string> ids;
  for (const PublishedCase& c : published_cases()) ids.insert(c.id);
  for (int i = 1; i <= 36; ++i)
    EXPECT_TRUE(ids.contains(std::string(1, 'A').append(std::to_string(i)))) << i;
}

TEST(Published, WiderBandsNameTheirReason) {
  for (const PublishedCase& c : published_cases()) {
    const double usual = c.kind == CaseClass::exact     ? 0.01
                         : c.kind == CaseClass::formula ? 0.03
                                                        : 0.15;
    EXPECT_TRUE(c.band <= usual || !c.reason.empty()) << c.id << ", " << c.what;
    EXPECT_FALSE(c.source.empty()) << c.id;
  }
}

}  // namespace
}  // namespace brrr
