#include "brrr/base/nearest_word.h"

#include <gtest/gtest.h>

#include <vector>

namespace brrr {
namespace {

TEST(NearestWord, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("jsno", "json"), 1) << "neighbours swapped are one edit";
  EXPECT_EQ(edit_distance("flaw", "lawn"), 2);
}

TEST(NearestWord, FindsWhatWasMeantAndNothingFarAway) {
  const std::vector<std::string> commands{"generate", "eval", "explain", "train", "tokenize"};
  EXPECT_EQ(nearest_word("genrate", commands), "generate");
  EXPECT_EQ(nearest_word("trian", commands), "train");
  EXPECT_EQ(nearest_word("evl", commands), "eval");
  EXPECT_EQ(nearest_word("xyzzy", commands), "");
  EXPECT_EQ(nearest_word("anything", {}), "");
}

}  // namespace
}  // namespace brrr
