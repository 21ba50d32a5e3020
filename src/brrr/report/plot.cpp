#include "brrr/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <sstream>
#include <vector>

#include "brrr/base/error.h"
#include "brrr/base/units.h"
#include "brrr/report/table.h"

namespace brrr::report {
namespace {

struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double y) {
    low = std::min(low, y);
    high = std::max(high, y);
  }
  bool empty() const { return low > high; }
};

// The values as they are drawn: logarithms on a log scale, NaN where there is nothing to draw.
std::vector<double> to_drawn(std::span<const double> ys, bool log_y) {
  std::vector<double> drawn;
  drawn.reserve(ys.size());
  for (double y : ys)
    drawn.push_back(!std::isfinite(y) || (log_y && y <= 0) ? NAN : log_y ? std::log10(y) : y);
  return drawn;
}

Range range_of(std::span<const double> drawn) {
  Range range;
  for (double y : drawn) {
    if (!std::isnan(y)) range.add(y);
  }
  if (!range.empty() && range.low == range.high) {  // a constant is drawn through the middle
    const double room = range.low == 0 ? 1 : std::abs(range.low) / 2;
    range.low -= room;
    range.high += room;
  }
  return range;
}

Range given_range(std::pair<double, double> y_range, bool log_y) {
  const auto [low, high] = y_range;
  check(low < high && (!log_y || low > 0), "line_plot: a range from ", low, " to ", high,
        " has nothing in it", log_y ? " on a log scale" : "");
  return log_y ? Range{std::log10(low), std::log10(high)} : Range{low, high};
}

// What each column of dots shows: the values that fall on it, or a point on the line between two.
std::vector<Range> columns_of(std::span<const double> drawn, int64_t columns) {
  std::vector<Range> ranges(static_cast<size_t>(columns));
  const auto count = static_cast<int64_t>(drawn.size());
  const auto at = [&](int64_t i) { return drawn[static_cast<size_t>(i)]; };
  const double per_value =
      count > 1 ? static_cast<double>(columns - 1) / static_cast<double>(count - 1) : 0;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(at(i))) continue;
    ranges[static_cast<size_t>(std::lround(static_cast<double>(i) * per_value))].add(at(i));
  }
  if (per_value <= 1) return ranges;
  for (int64_t c = 0; c < columns; ++c) {
    const double place = static_cast<double>(c) / per_value;
    const auto left = std::min(static_cast<int64_t>(place), count - 2);
    const double y = at(left) + (place - static_cast<double>(left)) * (at(left + 1) - at(left));
    if (ranges[static_cast<size_t>(c)].empty() && !std::isnan(y))
      ranges[static_cast<size_t>(c)].add(y);
  }
  return ranges;
}

class Canvas {
 public:
  Canvas(int width, int height)
      : width_(width),
        height_(height),
        cells_(static_cast<size_t>(width) * static_cast<size_t>(height), 0) {}

  int dot_columns() const { return 2 * width_; }
  int dot_rows() const { return 4 * height_; }
  void mark(int column, int row) {  // row 0 is the top
    constexpr uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    cells_[place(row / 4, column / 2)] |= kBits[row % 4][column % 2];
  }
  // Braille patterns are U+2800 to U+28FF, eight dots in the low eight bits.
  std::string line(int row) const {
    std::string text;
    for (int c = 0; c < width_; ++c) {
      const uint8_t dots = cells_[place(row, c)];
      if (dots == 0) {
        text += ' ';
        continue;
      }
      text +=
          {'\xE2', static_cast<char>(0xA0 | dots >> 6), static_cast<char>(0x80 | (dots & 0x3F))};
    }
    return text;
  }

 private:
  size_t place(int row, int column) const {
    return static_cast<size_t>(row) * static_cast<size_t>(width_) + static_cast<size_t>(column);
  }

  int width_, height_;
  std::vector<uint8_t> cells_;
};

int dot_row(double y, const Range& range, int rows) {
  const double from_top = (range.high - y) / (range.high - range.low);
  return std::clamp(static_cast<int>(std::lround(from_top * (rows - 1))), 0, rows - 1);
}

void draw(Canvas& canvas, const std::vector<Range>& columns, const Range& range) {
  std::optional<std::pair<int, int>> before;  // top and bottom dot of the column to the left
  for (int c = 0; c < canvas.dot_columns(); ++c) {
    const Range& here = columns[static_cast<size_t>(c)];
    if (here.empty()) {
      before.reset();
      continue;
    }
    const int top = dot_row(here.high, range, canvas.dot_rows());
    const int bottom = dot_row(here.low, range, canvas.dot_rows());
    int from = top, to = bottom;
    if (before) {  // no gap between neighbours on a steep curve
      from = std::min(from, before->second + 1);
      to = std::max(to, before->first - 1);
    }
    for (int row = from; row <= to; ++row) canvas.mark(c, row);
    before = {top, bottom};
  }
}

// 1, 2 or 5 times a power of ten, not below `least`.
double nice_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::vector<double> linear_ticks(double low, double high, int most) {
  const double step = nice_step((high - low) / most);
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k)
    ticks.push_back(k * step);
  return ticks;
}

// Ticks in drawn units: powers of ten, thinned when there are many and 1-2-5 when there are few.
std::vector<double> log_ticks(const Range& range, int most) {
  const double decades = range.high - range.low;
  if (decades < 0.5) {
    std::vector<double> ticks;
    for (double y : linear_ticks(std::pow(10, range.low), std::pow(10, range.high), most))
      ticks.push_back(std::log10(y));
    return ticks;
  }
  const double stride = std::max(1.0, std::ceil(decades / most));
  std::vector<double> ticks;
  for (double k = std::floor(range.low / stride) * stride; k <= range.high; k += stride) {
    for (double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && decades > 2) break;
      const double tick = k + std::log10(factor);
      if (tick >= range.low && tick <= range.high) ticks.push_back(tick);
    }
  }
  return ticks;
}

std::vector<std::string> tick_labels(const Range& range, const PlotOptions& options) {
  const int most = std::max(2, options.height / 2);
  std::vector<std::string> labels(static_cast<size_t>(options.height));
  const auto ticks =
      options.log_y ? log_ticks(range, most) : linear_ticks(range.low, range.high, most);
  for (double tick : ticks) {
    std::string& label = labels[static_cast<size_t>(dot_row(tick, range, 4 * options.height) / 4)];
    const double value = options.log_y ? std::pow(10, tick) : tick;
    if (label.empty()) label = fmt::format("{:.4g}", value == 0 ? 0.0 : value);  // no "-0"
  }
  return labels;
}

std::string spaces(int64_t count) {
  return std::string(static_cast<size_t>(std::max<int64_t>(0, count)), ' ');
}

std::string x_axis(int64_t count, int margin, const PlotOptions& options) {
  std::string line = spaces(margin) + " └";
  for (int i = 0; i < options.width; ++i) line += "─";
  const bool given = !options.x_ends.second.empty();
  const std::string first = given ? options.x_ends.first : "0",
                    last = given ? options.x_ends.second : with_commas(count - 1);
  const int64_t before =
      (options.width - display_width(options.x_label)) / 2 - display_width(first);
  const int64_t after = options.width - display_width(first) - before -
                        display_width(options.x_label) - display_width(last);
  return line + "\n" + spaces(margin + 2) + first + spaces(before) + options.x_label +
         spaces(after) + last + "\n";
}

std::string footnote(std::span<const double> ys, const PlotOptions& options) {
  const auto not_finite =
      std::count_if(ys.begin(), ys.end(), [](double y) { return !std::isfinite(y); });
  const auto not_positive =
      options.log_y
          ? std::count_if(ys.begin(), ys.end(), [](double y) { return std::isfinite(y) && y <= 0; })
          : 0;
  std::string text;
  if (not_finite > 0) text += fmt::format("  {} values are not finite\n", not_finite);
  if (not_positive > 0)
    text += fmt::format("  {} values are zero or below and have no logarithm\n", not_positive);
  return text;
}

}  // namespace

std::string line_plot(std::span<const double> ys, const PlotOptions& options) {
  check(options.width >= 8 && options.height >= 2, "line_plot: ", options.width, " x ",
        options.height, " characters are too few; at least 8 x 2");
  std::string out =
      options.title.empty() ? "" : options.title + (options.log_y ? " (log scale)" : "") + "\n";
  const std::vector<double> drawn = to_drawn(ys, options.log_y);
  const Range range =
      options.y_range ? given_range(*options.y_range, options.log_y) : range_of(drawn);
  if (range.empty()) return out + "  nothing to draw\n" + footnote(ys, options);

  Canvas canvas(options.width, options.height);
  draw(canvas, columns_of(drawn, canvas.dot_columns()), range);
  const std::vector<std::string> labels = tick_labels(range, options);
  int margin = 0;
  for (const std::string& label : labels) margin = std::max(margin, display_width(label));
  for (int row = 0; row < options.height; ++row) {
    const std::string& label = labels[static_cast<size_t>(row)];
    std::string line = spaces(margin - display_width(label)) + label +
                       (label.empty() ? " │" : " ┤") + canvas.line(row);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out + x_axis(static_cast<int64_t>(ys.size()), margin, options) + footnote(ys, options);
}

std::string side_by_side(const std::vector<std::string>& texts) {
  std::vector<std::vector<std::string>> columns;
  std::vector<int> widths;
  size_t rows = 0;
  for (const std::string& text : texts) {
    std::vector<std::string>& lines = columns.emplace_back();
    std::istringstream stream(text);
    int& width = widths.emplace_back(0);
    for (std::string line; std::getline(stream, line); lines.push_back(line))
      width = std::max(width, display_width(line));
    rows = std::max(rows, lines.size());
  }
  std::string out;
  for (size_t row = 0; row < rows; ++row) {
    std::string line;
    for (size_t c = 0; c < columns.size(); ++c) {
      const std::string cell = row < columns[c].size() ? columns[c][row] : "";
      line += cell + spaces(widths[c] - display_width(cell) + 3);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace brrr::report
