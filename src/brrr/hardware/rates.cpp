#include "brrr/hardware/rates.h"

#include <algorithm>
#include <cmath>

#include "brrr/base/error.h"

namespace brrr::hardware {
namespace {

// Where a coordinate lies between two points of an axis.
struct Position {
  size_t low;
  double part;  // of the way to the next point
};

Position locate(const RateAxis& axis, double x) {
  const std::vector<double>& points = axis.points;
  if (points.size() == 1 || x <= points.front()) return {0, 0};
  if (x >= points.back()) return {points.size() - 2, 1};
  const auto above = std::upper_bound(points.begin(), points.end(), x);
  const auto low = static_cast<size_t>(above - points.begin()) - 1;
  return {low, std::log(x / points[low]) / std::log(points[low + 1] / points[low])};
}

}  // namespace

size_t RateGrid::points() const {
  size_t count = 1;
  for (const RateAxis& axis : axes) count *= axis.points.size();
  return count;
}

double RateGrid::at(std::span<const double> where) const {
  invariant(where.size() == axes.size() && values.size() == points(), "a grid of ", axes.size(),
            " axes and ", values.size(), " values asked with ", where.size(), " coordinates");
  std::vector<Position> positions;
  for (size_t a = 0; a < axes.size(); ++a) positions.push_back(locate(axes[a], where[a]));
  double logarithm = 0;
  for (size_t corner = 0; corner < (size_t{1} << axes.size()); ++corner) {
    double weight = 1;
    size_t index = 0;
    for (size_t a = 0; a < axes.size(); ++a) {
      const bool upper = (corner >> a & 1U) != 0;
      weight *= upper ? positions[a].part : 1 - positions[a].part;
      const size_t last = axes[a].points.size() - 1;
      index = index * (last + 1) + std::min(last, positions[a].low + (upper ? 1 : 0));
    }
    if (weight == 1) return values[index];  // a point of the grid: exact
    if (weight > 0) logarithm += weight * std::log(values[index]);
  }
  return std::exp(logarithm);
}

double RateGrid::largest() const { return *std::max_element(values.begin(), values.end()); }

std::string_view to_text(RatesKind kind) {
  switch (kind) {
    case RatesKind::assumed: return "assumed";
    case RatesKind::quick: return "quick";
    case RatesKind::full: return "full";
  }
  return "";
}

const RateGrid* Rates::find(std::string_view family) const {
  const auto found = grids.find(family);
  return found == grids.end() ? nullptr : &found->second;
}

const RateGrid& Rates::grid(std::string_view family) const {
  const RateGrid* found = find(family);
  invariant(found != nullptr, "the rates of ", machine, " lack \"", family, "\"");
  return *found;
}

RateGrid constant_rate(std::string unit, double value) {
  return {.unit = std::move(unit), .axes = {}, .values = {value}};
}

Rates rates_from_peaks(std::string machine, const PlainRates& peaks) {
  Rates rates{.machine = std::move(machine), .source = "peaks alone, no kernel was measured"};
  const auto bytes = [&] {
    return RateGrid{.unit = "byte/s",
                    .axes = {{.name = "distance", .points = {1}}},
                    .values = {peaks.bytes_per_second}};
  };
  rates.grids["launch"] = constant_rate("s", peaks.launch_seconds);
  rates.grids["fork_join"] = constant_rate("s", peaks.launch_seconds / 1e3);
  rates.grids["peak.f32"] = constant_rate("flop/s", peaks.flops_per_second);
  rates.grids["bandwidth"] = bytes();
  rates.grids["optimizer"] = bytes();
  for (const char* layout : {"matmul.nn", "matmul.nt", "matmul.tn"})
    rates.grids[layout] = {.unit = "flop/s",
                           .axes = {{"m", {1}}, {"n", {1}}, {"k", {1}}},
                           .values = {peaks.flops_per_second}};
  for (const char* attention : {"attention", "attention_backward"})
    rates.grids[attention] = {.unit = "flop/s",
                              .axes = {{"keys", {1}}, {"head_dim", {1}}},
                              .values = {peaks.flops_per_second}};
  // A primitive is taken for eight multiply-adds an element: between an addition and an exponential.
  rates.grids["tile.other"] = constant_rate("element/s", peaks.flops_per_second / 16);
  rates.grids["scale.matmul.bf16"] = constant_rate("ratio", peaks.bf16_speedup);
  return rates;
}

}  // namespace brrr::hardware
