#include "brrr/report/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/base/units.h"
#include "brrr/tensor/dtype.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Table, AlignsNumbersRightAndTextLeft) {
  Table table({"name", "bytes", "note"}, "Sizes");
  table.row("f32", 4, "single");
  table.row(DType::bf16, 1234, "brain");
  EXPECT_EQ(table.text(),
            "Sizes\n"
            "  name  bytes  note\n"
            "  ────  ─────  ──────\n"
            "  f32       4  single\n"
            "  bf16   1234  brain\n");
}

TEST(Table, TakesAnythingThatHasText) {
  Table table({"what", "value"});
  table.row("size", 496_B);
  table.row("time", Seconds(8.889e-3));
  EXPECT_THAT(table.text(), HasSubstr("  size     496 B\n"));
  EXPECT_THAT(table.text(), HasSubstr("  time  8.889 ms\n"));
}

TEST(Table, TheFirstColumnNamesRowsEvenWhereNamesAreNumbers) {
  Table table({"n", "x"});
  table.row(7, 1);
  table.row(14, 2);
  EXPECT_THAT(table.text(), HasSubstr("  7   1\n  14  2\n"));
}

TEST(Table, SignsStillMakeNumbersAndEmptyCellsDoNotCount) {
  Table table({"a", "b"});
  table.row("x", "-5");
  table.row("y", "");
  table.row("z", "±384");
  EXPECT_THAT(table.text(), HasSubstr("  x    -5\n  y\n  z  ±384\n")) << table.text();
}

TEST(Table, CountsCharactersNotBytes) {
  EXPECT_EQ(display_width("µs"), 2);
  EXPECT_EQ(display_width("─█⣿"), 3);
  EXPECT_EQ(display_width(""), 0);
  Table table({"a", "b"});
  table.row("5 µs", "x");
  table.row("12 ms", "y");
  EXPECT_THAT(table.text(), HasSubstr("  5 µs   x\n"));
}

TEST(Table, RulesSetTotalsApartAndUnnamedColumnsHaveNoHeader) {
  Table table({"", ""});
  table.row("a", 1).rule().row("all", 1);
  EXPECT_EQ(table.text(), "  a    1\n  ───  ─\n  all  1\n");
}

TEST(Table, RefusesRowsOfAnotherLength) {
  Table table({"a", "b"});
  EXPECT_THAT([&] { table.row(1); }, ThrowsMessage<Error>(HasSubstr("1 cells")));
  EXPECT_THROW(Table({}), Error);
}

}  // namespace
}  // namespace brrr
