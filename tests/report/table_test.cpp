#include "brrr/report/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "brrr/base/units.h"
#include "brrr/report/terminal.h"
#include "brrr/tensor/dtype.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Table, AlignsNumbersRightAndTextLeft) {
  report::Table table({"name", "bytes", "note"}, "Sizes");
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
  report::Table table({"what", "value"});
  table.row("size", 496_B);
  table.row("time", Seconds(8.889e-3));
  EXPECT_THAT(table.text(), HasSubstr("  size     496 B\n"));
  EXPECT_THAT(table.text(), HasSubstr("  time  8.889 ms\n"));
}

TEST(Table, TheFirstColumnNamesRowsEvenWhereNamesAreNumbers) {
  report::Table table({"n", "x"});
  table.row(7, 1);
  table.row(14, 2);
  EXPECT_THAT(table.text(), HasSubstr("  7   1\n  14  2\n"));
}

TEST(Table, SignsStillMakeNumbersAndEmptyCellsDoNotCount) {
  report::Table table({"a", "b"});
  table.row("x", "-5");
  table.row("y", "");
  table.row("z", "±384");
  EXPECT_THAT(table.text(), HasSubstr("  x    -5\n  y\n  z  ±384\n")) << table.text();
}

TEST(Table, CountsCharactersNotBytes) {
  EXPECT_EQ(report::display_width("µs"), 2);
  EXPECT_EQ(report::display_width("─█⣿"), 3);
  EXPECT_EQ(report::display_width(""), 0);
  report::Table table({"a", "b"});
  table.row("5 µs", "x");
  table.row("12 ms", "y");
  EXPECT_THAT(table.text(), HasSubstr("  5 µs   x\n"));
}

TEST(Table, RulesSetTotalsApartAndUnnamedColumnsHaveNoHeader) {
  report::Table table({"", ""});
  table.row("a", 1).rule().row("all", 1);
  EXPECT_EQ(table.text(), "  a    1\n  ───  ─\n  all  1\n");
}

TEST(Table, RefusesRowsOfAnotherLength) {
  report::Table table({"a", "b"});
  EXPECT_THAT([&] { table.row(1); }, ThrowsMessage<Error>(HasSubstr("1 cells")));
  EXPECT_THROW(report::Table({}), Error);
}

TEST(Table, BreaksTextBetweenWordsToFit) {
  report::Table table({"id", "what", "n", "why"}, "A title of some words");
  table.row("a", "a text that is longer than the room", 12, "and one more text here");
  table.rule();
  table.row("b", "short", 3, "-");
  const std::string text = table.text(44);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(report::display_width(line), 44) << text;
  EXPECT_THAT(text, HasSubstr("  b   short"));
  for (const char* word : {"longer", "room", "more", "here"}) EXPECT_THAT(text, HasSubstr(word));
  EXPECT_EQ(table.text(200), table.text()) << "nothing changes where there is room";
}

TEST(Table, FormulasAreTextAndDashesAreNothing) {
  report::Table table({"what", "how", "n"});
  table.row("a", "8 x 989.5 TFLOP/s x 0.5 x 7 d", "-");
  table.row("b", "20 a parameter", "-");
  table.row("c", "6 x 3 x 2 x 1 and more", "1500");
  EXPECT_THAT(table.text(), HasSubstr("  b     20 a parameter")) << table.text();
  EXPECT_THAT(table.text(), HasSubstr("     -\n"))
      << "to the right, like the number: " << table.text();
}

TEST(Terminal, WrapsWordsAndIndentsWhatFollows) {
  EXPECT_EQ(report::wrapped_text("  - ", "one two three", 12), "  - one two\n    three\n");
  EXPECT_EQ(report::wrapped_text("", "unbreakable", 4), "unbreakable\n");
  EXPECT_EQ(report::wrap_words("", 10).size(), 1u);
}

TEST(Terminal, ASetWidthComesBeforeThatOfTheTerminal) {
  std::FILE* const file = std::tmpfile();  // has no width of its own
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(report::terminal_columns(file, 77), 77);
  report::set_terminal_columns(90);
  EXPECT_EQ(report::terminal_columns(file, 77), 90);
  for (int64_t not_believed : {0, 19, 10'001}) {
    report::set_terminal_columns(not_believed);
    EXPECT_EQ(report::terminal_columns(file, 77), 77) << not_believed;
  }
  std::fclose(file);
}

}  // namespace
}  // namespace brrr
