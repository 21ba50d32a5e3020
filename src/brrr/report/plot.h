// A curve in a terminal, drawn with braille dots: two by four of them to a character.
#pragma once

#include <span>
#include <string>

namespace brrr {

struct PlotOptions {
  int width = 72;   // characters of the drawing; labels come beside it
  int height = 14;  // lines of the drawing
  std::string title;
  bool log_y = false;  // values of zero and below are left out, and counted under the plot
  std::string x_label = "step";
};

// y over its index. Where a column of dots covers many values, it shows all from their least to
// their largest, so no spike is lost. Values that are not finite leave gaps.
std::string line_plot(std::span<const double> ys, const PlotOptions& options = {});

}  // namespace brrr
