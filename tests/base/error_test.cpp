#include "brrr/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "brrr/base/inline_vector.h"
#include "brrr/base/units.h"

namespace brrr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Error, MessagesJoinEveryKindOfPart) {
  const std::string text = "text";
  EXPECT_EQ(join_text("literal ", text, ' ', std::string_view("view")), "literal text view");
  EXPECT_EQ(join_text(-3, " ", 7U, " ", int64_t{1} << 40, " ", uint8_t{65}),
            "-3 7 1099511627776 65");
  EXPECT_EQ(join_text(true, "/", false), "true/false");
  EXPECT_EQ(join_text(0.25, " ", 1e-9, " ", 1.0F), "0.25 1e-09 1");
  EXPECT_EQ(join_text(), "");
}

TEST(Error, TypesOfOursTakePartByToText) {
  EXPECT_EQ(join_text(InlineVector<int64_t, 4>{2, 3}, " takes ", 1536_MiB), "[2, 3] takes 1.5 GiB");
}

TEST(Error, CheckThrowsTheMessageOnlyWhenItsConditionFails) {
  EXPECT_NO_THROW(check(true, "never"));
  EXPECT_THAT([] { check(1 > 2, "sizes ", 1, " and ", 2, " differ"); },
              ThrowsMessage<Error>("sizes 1 and 2 differ"));
  EXPECT_THAT([] { fail("no device ", 7); }, ThrowsMessage<Error>("no device 7"));
}

TEST(Error, ABrokenPromiseIsOurBugAndNamesItsPlace) {
  EXPECT_NO_THROW(invariant(true, "never"));
  EXPECT_THAT(
      [] { invariant(false, "value ", 3, " has no range"); },
      ThrowsMessage<InternalError>(AllOf(HasSubstr("bug"), HasSubstr("value 3 has no range"),
                                         HasSubstr("error_test.cpp:"))));
}

TEST(Error, MistakesOfTheCallerAndOfBrrrAreToldApart) {
  static_assert(!std::is_base_of_v<Error, InternalError>);
  static_assert(!std::is_base_of_v<InternalError, Error>);
  static_assert(std::is_base_of_v<std::exception, Error>);
  static_assert(std::is_base_of_v<std::exception, InternalError>);
}

}  // namespace
}  // namespace brrr
