#include "brrr/report/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "brrr/base/error.h"
#include "brrr/report/html.h"

namespace brrr::report {
namespace {

constexpr double kWidth = 760, kHeight = 420, kLeft = 76, kRight = 20, kTop = 40, kBottom = 52;
constexpr const char* kColours[] = {"#2f6fde", "#d9652b", "#1f9d7a",
                                    "#8a4fd0", "#b8860b", "#c2407a"};
constexpr const char* kDashes[] = {"", "7 4", "2 3", "9 3 2 3", "", "7 4"};

// From values to places on the paper, and which values get a label.
class Axis {
 public:
  Axis(bool log, double from, double to) : log_(log), from_(from), to_(to) {}

  void include(double value) {
    if (!std::isfinite(value) || (log_ && value <= 0)) return;
    low_ = std::min(low_, scaled(value));
    high_ = std::max(high_, scaled(value));
  }
  void finish(double room_part) {
    if (!(low_ <= high_)) low_ = 0, high_ = 1;
    const double room = high_ > low_ ? room_part * (high_ - low_) : 0.5;
    low_ -= room;
    high_ += room;
  }
  // NaN where the value has no place.
  double place(double value) const {
    if (!std::isfinite(value) || (log_ && value <= 0)) return NAN;
    return from_ + (scaled(value) - low_) / (high_ - low_) * (to_ - from_);
  }
  std::vector<double> ticks() const {
    std::vector<double> found;
    if (log_ && high_ - low_ > 0.7) {
      for (double power = std::floor(low_); power <= high_; ++power) {
        for (double factor : {1.0, 2.0, 5.0}) {
          if (factor > 1 && high_ - low_ > 3) continue;
          const double tick = power + std::log10(factor);
          if (tick >= low_ && tick <= high_) found.push_back(std::pow(10, tick));
        }
      }
      return found;
    }
    const double low = log_ ? std::pow(10, low_) : low_, high = log_ ? std::pow(10, high_) : high_;
    double step = std::pow(10, std::floor(std::log10((high - low) / 5)));
    for (double factor : {2.0, 2.5, 2.0}) {  // 1, 2, 5, 10
      if ((high - low) / step > 7) step *= factor;
    }
    for (double k = std::ceil(low / step); k * step <= high; ++k) found.push_back(k * step);
    return found;
  }

 private:
  double scaled(double value) const { return log_ ? std::log10(value) : value; }

  bool log_;
  double from_, to_, low_ = INFINITY, high_ = -INFINITY;
};

std::string text(double x, double y, const std::string& words, std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, more,
                     html_escaped(words));
}

std::string frame(const Axis& x, const Axis& y, const SvgPlotOptions& options) {
  std::string out;
  for (double tick : y.ticks()) {
    out += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#e3e6eb\"/>\n", kLeft,
        kWidth - kRight, y.place(tick));
    out += text(kLeft - 8, y.place(tick) + 4, fmt::format("{:.4g}", tick), "text-anchor=\"end\"");
  }
  for (double tick : x.ticks()) {
    out += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#5b6475\"/>\n",
        x.place(tick), kHeight - kBottom, kHeight - kBottom + 5);
    out += text(x.place(tick), kHeight - kBottom + 19, fmt::format("{:.4g}", tick),
                "text-anchor=\"middle\"");
  }
  out += fmt::format("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"#5b6475\"/>\n",
                     kLeft, kWidth - kRight, kHeight - kBottom);
  out += text(kLeft, 22, options.title, "font-size=\"15\" font-weight=\"bold\"");
  out +=
      text((kLeft + kWidth - kRight) / 2, kHeight - 10, options.x_label, "text-anchor=\"middle\"");
  const double middle = (kTop + kHeight - kBottom) / 2;
  out += text(16, middle, options.y_label,
              fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 16 {:.1f})\"", middle));
  for (const auto& [value, words] : options.marks) {
    out += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#5b6475\" "
        "stroke-dasharray=\"2 3\"/>\n",
        x.place(value), kTop, kHeight - kBottom);
    out += text(x.place(value) + 5, kTop + 10, words);
  }
  return out;
}

std::string drawn(const SvgCurve& curve, size_t number, const Axis& x, const Axis& y) {
  const char* colour = kColours[number % std::size(kColours)];
  std::string path, dots;
  bool pen_down = false;
  for (const auto& [px, py] : curve.points) {
    const double u = x.place(px), v = y.place(py);
    if (!std::isfinite(u) || !std::isfinite(v)) {
      pen_down = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", u, v);
    dots += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\" fill=\"{}\"><title>{}: {:.4g}, "
        "{:.4g}</title></circle>\n",
        u, v, colour, html_escaped(curve.name), px, py);
    pen_down = true;
  }
  const double legend_y = kTop + 14 + 18 * static_cast<double>(number),
               legend_x = kWidth - kRight - 190;
  const char* dash = kDashes[number % std::size(kDashes)];
  return fmt::format(
             "<path d=\"{0}\" fill=\"none\" stroke=\"{1}\" stroke-width=\"2\" "
             "stroke-dasharray=\"{2}\"/>\n"
             "<line x1=\"{3}\" x2=\"{4}\" y1=\"{5}\" y2=\"{5}\" stroke=\"{1}\" stroke-width=\"3\" "
             "stroke-dasharray=\"{2}\"/>\n",
             path, colour, dash, legend_x, legend_x + 26, legend_y - 4) +
         text(legend_x + 33, legend_y, curve.name) + dots;
}

}  // namespace

std::string svg_plot(const std::vector<SvgCurve>& curves, const SvgPlotOptions& options) {
  Axis x(options.log_x, kLeft, kWidth - kRight), y(options.log_y, kHeight - kBottom, kTop);
  for (const SvgCurve& curve : curves) {
    for (const auto& [px, py] : curve.points) {
      x.include(px);
      y.include(py);
    }
  }
  x.finish(0.02);
  y.finish(0.06);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"#1c2330\">\n<rect width=\"{0}\" "
      "height=\"{1}\" "
      "fill=\"white\"/>\n",
      kWidth, kHeight);
  out += frame(x, y, options);
  for (size_t i = 0; i < curves.size(); ++i) out += drawn(curves[i], i, x, y);
  return out + "</svg>\n";
}

}  // namespace brrr::report
