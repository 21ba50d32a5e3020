#include "brrr/report/svg_bars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

namespace brrr {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Widths of the bars, in order; squares of the legend and the paper are left out.
std::vector<double> bar_widths(const std::string& svg) {
  const std::regex bar("width=\"([0-9.]+)\" height=\"16\"");
  std::vector<double> widths;
  for (auto it = std::sregex_iterator(svg.begin(), svg.end(), bar); it != std::sregex_iterator();
       ++it)
    widths.push_back(std::stod((*it)[1]));
  return widths;
}

TEST(SvgBars, LengthsAreLogarithms) {
  const std::string svg = report::svg_bars({{"slow", 0.1, "0.1", "interpreter"},
                                            {"middle", 10, "10 (x 100)", "SIMD"},
                                            {"fast", 1000, "1,000 (x 100)", "SIMD", true}},
                                           {.title = "A <title>", .axis = "GFLOP/s"});
  const std::vector<double> widths = bar_widths(svg);
  ASSERT_EQ(widths.size(), 3u);
  EXPECT_GT(widths[0], 0) << "the shortest bar is seen";
  EXPECT_NEAR(widths[2] - widths[1], widths[1] - widths[0], 0.2) << "a factor of 100 each";
  for (const char* word : {"slow", "10 (x 100)", "interpreter", "SIMD", "GFLOP/s", "&lt;title&gt;"})
    EXPECT_THAT(svg, HasSubstr(word));
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"0.4\""));
}

TEST(SvgBars, LeavesOutWhatHasNoLogarithm) {
  const std::string svg = report::svg_bars(
      {{"none", 0, "", ""}, {"odd", NAN, "", ""}, {"one", 1, "1", ""}}, {.title = "", .axis = ""});
  EXPECT_EQ(bar_widths(svg).size(), 1u);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(report::svg_bars({}, {.title = "", .axis = ""}), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace brrr
