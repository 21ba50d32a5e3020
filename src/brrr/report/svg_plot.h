// Curves as a drawing of their own: one SVG file with axes, ticks and a legend.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace brrr::report {

struct SvgCurve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

struct SvgPlotOptions {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;                       // what has no logarithm is left out
  std::vector<std::pair<double, std::string>> marks = {};  // vertical lines with a word
};

std::string svg_plot(const std::vector<SvgCurve>& curves, const SvgPlotOptions& options);

}  // namespace brrr::report
