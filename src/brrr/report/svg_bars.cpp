#include "brrr/report/svg_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "brrr/report/html.h"

namespace brrr::report {
namespace {

constexpr double kWidth = 860, kLeft = 150, kRight = 150, kTop = 66, kBottom = 48, kRow = 24,
                 kBar = 16;
constexpr const char* kColours[] = {"#8a93a3", "#b8860b", "#1f9d7a", "#2f6fde", "#8a4fd0",
                                    "#d9652b", "#c2407a", "#4aa3c7", "#6b7a1e", "#1c2330"};

std::string text(double x, double y, std::string_view words, std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, more,
                     html_escaped(words));
}

// Whole powers of ten around all values.
struct LogAxis {
  double low = 0, high = 1;

  explicit LogAxis(const std::vector<SvgBar>& bars) {
    if (bars.empty()) return;
    const auto [least, most] =
        std::minmax_element(bars.begin(), bars.end(),
                            [](const SvgBar& a, const SvgBar& b) { return a.value < b.value; });
    low = std::floor(std::log10(least->value) - 0.01);  // the shortest bar has a length, too
    high = std::max(low + 1, std::ceil(std::log10(most->value)));
  }
  double place(double value) const {
    return kLeft + (std::log10(value) - low) / (high - low) * (kWidth - kLeft - kRight);
  }
};

std::string power_text(double power) {
  return std::abs(power) <= 3 ? fmt::format("{:g}", std::pow(10, power))
                              : fmt::format("1e{:.0f}", power);
}

std::string grid(const LogAxis& axis, double bottom) {
  std::string out;
  for (double power = axis.low; power <= axis.high; ++power) {
    const double x = axis.place(std::pow(10, power));
    out += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2:.1f}\" stroke=\"#e3e6eb\"/>\n", x,
        kTop - 4, bottom);
    out += text(x, bottom + 16, power_text(power), "text-anchor=\"middle\"");
  }
  return out;
}

std::vector<std::string> groups_of(const std::vector<SvgBar>& bars) {
  std::vector<std::string> groups;
  for (const SvgBar& bar : bars) {
    if (std::find(groups.begin(), groups.end(), bar.group) == groups.end())
      groups.push_back(bar.group);
  }
  return groups;
}

const char* colour_of(const std::vector<std::string>& groups, const std::string& group) {
  const auto found = std::find(groups.begin(), groups.end(), group);
  return kColours[static_cast<size_t>(found - groups.begin()) % std::size(kColours)];
}

std::string legend(const std::vector<std::string>& groups) {
  constexpr double kSquare = 10, kLetter = 6.6, kGap = 26;
  std::string out;
  double x = 16;
  for (const std::string& group : groups) {
    if (group.empty()) continue;
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", x,
                       kTop - 31, kSquare, kSquare, colour_of(groups, group));
    out += text(x + kSquare + 4, kTop - 22, group);
    x += kLetter * static_cast<double>(group.size()) + kGap;
  }
  return out;
}

}  // namespace

std::string svg_bars(const std::vector<SvgBar>& all, const SvgBarsOptions& options) {
  std::vector<SvgBar> bars;  // what has a logarithm
  std::copy_if(all.begin(), all.end(), std::back_inserter(bars),
               [](const SvgBar& bar) { return std::isfinite(bar.value) && bar.value > 0; });
  const LogAxis axis(bars);
  const std::vector<std::string> groups = groups_of(bars);
  const double bottom = kTop + kRow * static_cast<double>(bars.size()), height = bottom + kBottom;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#1c2330\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      kWidth, height);
  out += text(16, 22, options.title, "font-size=\"15\" font-weight=\"bold\"");
  out += legend(groups) + grid(axis, bottom);
  double y = kTop;
  for (const SvgBar& bar : bars) {
    const double end = axis.place(bar.value), middle = y + kBar / 2 + 4;
    out += text(kLeft - 8, middle, bar.name, "text-anchor=\"end\"");
    out += fmt::format(
        "<rect x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\" "
        "fill-opacity=\"{}\"/>\n",
        kLeft, y, end - kLeft, kBar, colour_of(groups, bar.group), bar.is_faint ? "0.4" : "1");
    out += text(end + 6, middle, bar.label);
    y += kRow;
  }
  out += text((kLeft + kWidth - kRight) / 2, height - 10, options.axis, "text-anchor=\"middle\"");
  return out + "</svg>\n";
}

}  // namespace brrr::report
