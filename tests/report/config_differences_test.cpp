#include "brrr/report/config_differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"

namespace brrr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ConfigDifferences, AreTheKeysWithDifferentValues) {
  const auto found = report::config_differences(
      {{"a", "seed = 1\nlr = 0.1\n[model]\nwidth = 64\nlayers = 2\n"},
       {"b", "seed = 1\nlr = 0.3\n[model]\nwidth = 128\ntied = true\nlayers = 2\n"}});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].key, "lr");
  EXPECT_THAT(found[0].values, ElementsAre("0.1", "0.3"));
  EXPECT_EQ(found[1].key, "model.tied");
  EXPECT_THAT(found[1].values, ElementsAre("", "true"));
  EXPECT_EQ(found[2].key, "model.width");
  EXPECT_THAT(found[2].values, ElementsAre("64", "128"));
}

TEST(ConfigDifferences, WhatIsNotTomlIsNamed) {
  EXPECT_THAT(error_of([] {
                report::config_differences({{"runs/a/config.toml", "x = 1\ny = = 2\n"}});
              }),
              HasSubstr("runs/a/config.toml:2 is not TOML"));
}

}  // namespace
}  // namespace brrr
