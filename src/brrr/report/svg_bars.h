// Bars along a logarithmic axis, one below the other, as one SVG file: names to the left, values behind the bars.
#pragma once

#include <string>
#include <vector>

namespace brrr::report {

struct SvgBar {
  std::string name;   // to the left
  double value = 0;   // the length; above 0
  std::string label;  // behind the bar
  std::string group;  // bars of a group have a colour, named in the legend
  bool is_faint = false;
};

struct SvgBarsOptions {
  std::string title, axis;  // what the axis shows, with its unit
};

std::string svg_bars(const std::vector<SvgBar>& bars, const SvgBarsOptions& options);

}  // namespace brrr::report
