#include "brrr/base/join_names.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace brrr {
namespace {

struct Fruit {
  std::string_view name;
  int64_t grams = 0;
};

TEST(JoinNames, PutsCommasBetweenNames) {
  constexpr std::string_view kNames[] = {"adam", "lion", "sgd"};
  EXPECT_EQ(join_names(kNames), "adam, lion, sgd");
  EXPECT_EQ(join_names(std::vector<std::string>{"one"}), "one");
  EXPECT_EQ(join_names(std::vector<std::string>{}), "");
}

TEST(JoinNames, TakesAMemberOrAFunctionOfTheElement) {
  const std::vector<Fruit> fruits = {{"apple", 150}, {"plum", 30}};
  EXPECT_EQ(join_names(fruits, &Fruit::name), "apple, plum");
  EXPECT_EQ(join_names(fruits, &Fruit::grams), "150, 30");
  EXPECT_EQ(join_names(fruits, [](const Fruit& f) { return join_text(f.name, " ", f.grams); }),
            "apple 150, plum 30");
}

}  // namespace
}  // namespace brrr
