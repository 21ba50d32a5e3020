#include "brrr/report/svg_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace brrr {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SvgPlot, HasCurvesLabelsAndMarks) {
  const std::string svg = report::svg_plot(
      {{"test", {{10, 1}, {100, 50}, {1000, 0.5}}}, {"norm", {{10, 1}, {1000, 2}}}},
      {.title = "A title",
       .x_label = "size",
       .y_label = "error",
       .log_x = true,
       .log_y = true,
       .marks = {{100, "p = n"}}});
  for (const char* word : {"A title", "size", "error", "test", "norm", "p = n", "<svg", "</svg>"})
    EXPECT_THAT(svg, HasSubstr(word));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(SvgPlot, LeavesOutWhatHasNoPlaceAndEscapesNames) {
  const std::string svg =
      report::svg_plot({{"<b>", {{1, NAN}, {2, 0}, {3, 1}, {4, 2}}}},
                       {.title = "", .x_label = "", .y_label = "", .log_y = true});
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(report::svg_plot({}, {}), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace brrr
