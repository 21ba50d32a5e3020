#include "brrr/report/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <vector>

#include "brrr/base/error.h"
#include "brrr/report/table.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The characters of the drawing in one of its lines: what is right of the axis.
std::string drawing(const std::string& line) {
  for (std::string_view axis : {"│", "┤"}) {
    const size_t place = line.find(axis);
    if (place != std::string::npos) return line.substr(place + axis.size());
  }
  return "no axis";
}

TEST(LinePlot, DrawsARisingLineFromBottomLeftToTopRight) {
  const std::vector<double> ys{0, 1, 2, 3, 4, 5, 6, 7};
  // 16 x 8 dots: the line climbs one dot every two columns.
  EXPECT_EQ(report::line_plot(ys, {.width = 8, .height = 2, .title = "up"}),
            "up\n"
            "5 ┤    ⣀⠤⠒⠉\n"
            "0 ┤⣀⠤⠒⠉\n"
            "  └────────\n"
            "   0 step 7\n");
}

TEST(LinePlot, HasTheSizeAskedFor) {
  std::vector<double> ys(1000);
  for (size_t i = 0; i < ys.size(); ++i) ys[i] = std::sin(static_cast<double>(i) / 50);
  const auto lines = lines_of(report::line_plot(ys, {.width = 40, .height = 10, .title = "t"}));
  ASSERT_EQ(lines.size(), 1u + 10u + 2u);
  for (size_t i = 1; i <= 10; ++i) EXPECT_LE(report::display_width(drawing(lines[i])), 40);
  EXPECT_THAT(lines.back(), HasSubstr("999"));
}

TEST(LinePlot, ASpikeAmongManyValuesIsNotLost) {
  std::vector<double> ys(10000, 1.0);
  ys[5000] = 100;
  const auto lines = lines_of(report::line_plot(ys, {.width = 20, .height = 5}));
  EXPECT_FALSE(drawing(lines[0]).empty()) << "the top line shows the spike";
}

TEST(LinePlot, LogScaleMarksPowersOfTen) {
  std::vector<double> ys;
  for (int i = 0; i < 100; ++i) ys.push_back(std::pow(10, 2 - i * 0.06));
  const std::string text =
      report::line_plot(ys, {.width = 30, .height = 12, .title = "loss", .log_y = true});
  EXPECT_THAT(text, HasSubstr("loss (log scale)"));
  EXPECT_THAT(text, HasSubstr("100 ┤"));
  EXPECT_THAT(text, HasSubstr("1 ┤"));
  EXPECT_THAT(text, HasSubstr("0.01 ┤"));
}

TEST(LinePlot, AnExponentialIsStraightOnALogScale) {
  std::vector<double> ys;
  for (int i = 0; i < 8; ++i) ys.push_back(std::exp(i));
  const auto exponential =
      lines_of(report::line_plot(ys, {.width = 8, .height = 2, .log_y = true}));
  const auto straight = lines_of(
      report::line_plot(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}, {.width = 8, .height = 2}));
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(drawing(exponential[i]), drawing(straight[i]));
}

TEST(LinePlot, SmallRangesOnALogScaleStillHaveLabels) {
  const std::string text = report::line_plot(std::vector<double>{1.1, 1.2, 1.3},
                                             {.width = 20, .height = 6, .log_y = true});
  EXPECT_THAT(text, HasSubstr("1.2 ┤"));
}

TEST(LinePlot, AConstantRunsThroughTheMiddle) {
  const auto lines =
      lines_of(report::line_plot(std::vector<double>(50, 3.0), {.width = 10, .height = 5}));
  EXPECT_EQ(report::display_width(drawing(lines[2])), 10);
  EXPECT_TRUE(drawing(lines[0]).empty());
  EXPECT_TRUE(drawing(lines[4]).empty());
}

TEST(LinePlot, CountsWhatItCannotDraw) {
  const std::vector<double> ys{1, NAN, 2, INFINITY, 0, -3, 4};
  const std::string log = report::line_plot(ys, {.log_y = true});
  EXPECT_THAT(log, HasSubstr("2 values are not finite"));
  EXPECT_THAT(log, HasSubstr("2 values are zero or below"));
  const std::string linear = report::line_plot(ys);
  EXPECT_THAT(linear, HasSubstr("2 values are not finite"));
  EXPECT_THAT(linear, Not(HasSubstr("zero or below")));
}

TEST(LinePlot, SurvivesNothingToDrawAndOneValue) {
  EXPECT_THAT(report::line_plot({}), HasSubstr("nothing to draw"));
  EXPECT_THAT(report::line_plot(std::vector<double>{NAN, NAN}), HasSubstr("nothing to draw"));
  EXPECT_THAT(report::line_plot(std::vector<double>{5}), HasSubstr("5 ┤"));
  EXPECT_THAT(report::line_plot(std::vector<double>{1e300, -1e300}), HasSubstr("step"));
}

TEST(LinePlot, RefusesSizesWithoutRoom) {
  EXPECT_THROW(report::line_plot(std::vector<double>{1}, {.width = 7}), Error);
  EXPECT_THROW(report::line_plot(std::vector<double>{1}, {.height = 1}), Error);
}

TEST(LinePlot, DrawsOnAGivenScale) {
  const std::vector<double> ys{5, 5};
  const std::string plot = report::line_plot(ys, {.width = 8, .height = 2, .y_range = {{0, 5}}});
  EXPECT_THAT(drawing(lines_of(plot)[0]), HasSubstr("⠉⠉⠉⠉⠉⠉⠉⠉"));
  EXPECT_THROW(report::line_plot(ys, {.y_range = {{5, 5}}}), Error);
}

TEST(SideBySide, KeepsColumnsApart) {
  EXPECT_EQ(report::side_by_side({"a\nbbb\n", "1\n2\n3\n"}), "a     1\nbbb   2\n      3\n");
}

}  // namespace
}  // namespace brrr
