// A curve in a terminal, drawn with braille dots: two by four of them to a character.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace brrr::report {

struct PlotOptions {
  int width = 72;   // characters of the drawing; labels come beside it
  int height = 14;  // lines of the drawing
  std::string title;
  bool log_y = false;  // values of zero and below are left out, and counted under the plot
  std::string x_label = "step";
  std::pair<std::string, std::string> x_ends = {};  // in place of 0 and the last index
  // Lowest and highest y of the drawing, for plots with one scale; values outside are drawn at its edge.
  std::optional<std::pair<double, double>> y_range = {};
};

// y over its index. Where a column of dots covers many values, it shows all from their least to
// their largest, so no spike is lost. Values that are not finite leave gaps.
std::string line_plot(std::span<const double> ys, const PlotOptions& options = {});

// Texts of several lines next to each other, each as wide as its widest line.
std::string side_by_side(const std::vector<std::string>& texts);

}  // namespace brrr::report
