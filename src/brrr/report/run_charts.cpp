#include "brrr/report/run_charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "brrr/base/error.h"
#include "brrr/run/learning_curves.h"

namespace brrr::report {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostPoints = 1200;  // of one line: more than a screen has columns

struct Line {
  std::string name;
  int colour = 0;
  std::string style = "solid";  // solid, faint, dots, dashed, area, bubbles
  Points points = {};
};

Json line_json(const Line& line) {
  Json points = Json::array();
  for (const auto& [x, y] : thinned(line.points, kMostPoints)) {
    if (std::isfinite(y)) points.push_back({x, y});
  }
  return {{"name", line.name}, {"colour", line.colour}, {"style", line.style}, {"points", points}};
}

struct ChartOptions {
  std::string title, y_label, unit = "";
  std::string x_label = "step";
  bool log_y = false, log_x = false, from_zero = false, wide = false;
};

Json chart_json(const ChartOptions& options, const std::vector<Line>& lines) {
  Json series = Json::array();
  for (const Line& line : lines) {
    if (!line.points.empty()) series.push_back(line_json(line));
  }
  return {{"title", options.title},
          {"x", {{"label", options.x_label}, {"log", options.log_x}}},
          {"y",
           {{"label", options.y_label},
            {"log", options.log_y},
            {"unit", options.unit},
            {"zero", options.from_zero}}},
          {"wide", options.wide},
          {"series", series},
          {"marks", Json::array()}};
}

template <typename Value>
Points points_of(const runs::RunLog& run, const Value& value) {
  Points points;
  for (const runs::StepRecord& record : run.steps)
    points.emplace_back(static_cast<double>(record.step), value(record));
  return points;
}

// The mean over as many values before as behind, so that the line neither lags nor leads: 2 % of the run to
// each side, less where the curve begins, which is steep, and at its end.
Points smooth_line(const Points& points) {
  std::vector<double> sums{0}, counts{0};  // of the finite values before each place
  for (const auto& [x, y] : points) {
    sums.push_back(sums.back() + (std::isfinite(y) ? y : 0));
    counts.push_back(counts.back() + (std::isfinite(y) ? 1 : 0));
  }
  Points smooth;
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t side = std::min({points.size() / 50, i / 10, points.size() - 1 - i});
    const size_t begin = i - side, end = i + side + 1;
    smooth.emplace_back(points[i].first, (sums[end] - sums[begin]) / (counts[end] - counts[begin]));
  }
  return smooth;
}

Points optional_points(const runs::RunLog& run, std::optional<double> runs::StepRecord::*field) {
  Points points;
  for (const runs::StepRecord& record : run.steps) {
    const std::optional<double>& value = record.*field;
    if (value) points.emplace_back(static_cast<double>(record.step), *value);
  }
  return points;
}

// ---- the charts of one run -----------------------------------------------------------------------------

Json loss_chart(const runs::RunLog& run, const runs::LearningRegime& learning) {
  const Points raw = points_of(run, [](const runs::StepRecord& r) { return r.loss; });
  const Points smooth = smooth_line(raw);
  // A loss that falls far is drawn by its logarithm; else its later part would be a line at the bottom.
  const bool far = !smooth.empty() && smooth.back().second > 0 &&
                   smooth.front().second > 6 * smooth.back().second;
  Json chart = chart_json(
      {.title = "Loss", .y_label = "cross-entropy (nats a token)", .log_y = far, .wide = true},
      {{.name = "each step", .colour = 0, .style = "faint", .points = raw},
       {.name = "smoothed", .colour = 0, .points = smooth},
       {.name = "training, evaluated",
        .colour = 2,
        .style = "dashed",
        .points = optional_points(run, &runs::StepRecord::train_loss)},
       {.name = "validation",
        .colour = 1,
        .style = "dots",
        .points = optional_points(run, &runs::StepRecord::validation_loss)}});
  if (learning.best_step > 0)
    chart["marks"].push_back({{"x", learning.best_step}, {"text", "best validation loss"}});
  for (const runs::StepRecord& record : run.steps) {
    if (!record.guard.empty())
      chart["marks"].push_back({{"x", record.step}, {"text", "guard: " + record.guard}});
  }
  return chart;
}

Json with_smooth(const ChartOptions& options, int colour, const Points& raw) {
  return chart_json(options,
                    {{.name = "each step", .colour = colour, .style = "faint", .points = raw},
                     {.name = "smoothed", .colour = colour, .points = smooth_line(raw)}});
}

Json activations_chart(const runs::RunLog& run) {
  std::vector<Line> lines;
  std::map<std::string, size_t> place;
  for (const runs::StepRecord& record : run.steps) {
    for (const auto& [part, largest] : record.activations) {
      const auto [found, is_new] = place.emplace(part, lines.size());
      if (is_new) {  // after eight colours they come again, dashed
        const bool dashed = lines.size() % 16 >= 8;
        lines.push_back({.name = part,
                         .colour = static_cast<int>(lines.size()),
                         .style = dashed ? "dashed" : "solid"});
      }
      lines[found->second].points.emplace_back(static_cast<double>(record.step), largest);
    }
  }
  return chart_json({.title = "Largest activations", .y_label = "largest |x|", .log_y = true},
                    lines);
}

Json memory_chart(const runs::RunFacts& facts) {
  std::vector<Line> lines;
  for (size_t i = 0; i < facts.memory_timeline.size(); ++i) {
    const runs::MemoryMoment& moment = facts.memory_timeline[i];
    if (lines.empty() || lines.back().name != moment.phase) {
      const auto same = std::find_if(lines.begin(), lines.end(),
                                     [&](const Line& line) { return line.name == moment.phase; });
      if (same != lines.end()) {
        std::rotate(same, same + 1, lines.end());
      } else {
        lines.push_back(
            {.name = moment.phase, .colour = static_cast<int>(lines.size()), .style = "area"});
      }
    }
    lines.back().points.emplace_back(static_cast<double>(i), static_cast<double>(moment.bytes));
  }
  return chart_json({.title = "Memory of a step, kernel by kernel",
                     .y_label = "arena in use",
                     .unit = "B",
                     .x_label = "kernel",
                     .from_zero = true},
                    lines);
}

// Kernels by the arithmetic that they do for each byte, under the two roofs of the machine. The area of a
// bubble is the time that the kernel takes.
Json roofline_chart(const runs::RunFacts& facts) {
  constexpr std::array kRegimes{"compute", "bandwidth", "overhead"};
  double total = 0, low = INFINITY, high = 0;
  const auto intensity = [](const runs::KernelFact& k) { return k.flops / k.bytes; };
  const auto drawable = [](const runs::KernelFact& k) {
    return k.flops > 0 && k.bytes > 0 && k.seconds > 0;
  };
  for (const runs::KernelFact& kernel : facts.kernels) {
    total += kernel.seconds;
    if (!drawable(kernel)) continue;
    low = std::min(low, intensity(kernel));
    high = std::max(high, intensity(kernel));
  }
  if (high == 0) return nullptr;
  std::vector<Line> roofs;
  if (facts.peak_flops > 0 && facts.peak_bandwidth <= 0) {  // only one of the two is known
    roofs.push_back({.name = "peak of arithmetic",
                     .colour = 7,
                     .points = {{low / 2, facts.peak_flops}, {2 * high, facts.peak_flops}}});
  }
  if (facts.peak_flops > 0 && facts.peak_bandwidth > 0) {
    const double knee = facts.peak_flops / facts.peak_bandwidth;
    low = std::min(low, knee / 4) / 2;
    high = std::max(high, knee * 4) * 2;
    roofs.push_back({.name = "what the machine can do",
                     .colour = 7,
                     .points = {{low, low * facts.peak_bandwidth},
                                {knee, facts.peak_flops},
                                {high, facts.peak_flops}}});
  }
  Json chart = chart_json({.title = "What bounds the speed: kernels under the roofs of the machine",
                           .y_label = "FLOP/s, as predicted",
                           .unit = "FLOP/s",
                           .x_label = "arithmetic intensity (FLOP for each byte of memory traffic)",
                           .log_y = true,
                           .log_x = true,
                           .wide = true},
                          roofs);
  for (size_t r = 0; r < kRegimes.size(); ++r) {
    Json points = Json::array();
    for (const runs::KernelFact& k : facts.kernels) {
      if (k.regime != kRegimes[r] || !drawable(k)) continue;
      points.push_back(
          {intensity(k), k.flops / k.seconds, k.seconds / total,
           join_text(k.name, " x ", k.calls, ", ", to_text(Seconds(k.seconds)), " a step")});
    }
    if (!points.empty())
      chart["series"].push_back({{"name", join_text(kRegimes[r], "-bound")},
                                 {"colour", r},
                                 {"style", "bubbles"},
                                 {"points", points}});
  }
  return chart;
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Points thinned(const Points& points, size_t most) {
  if (points.size() <= most || most < 2) return points;
  Points kept;
  const size_t stretches = most / 2;
  for (size_t s = 0; s < stretches; ++s) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(points.size() * s / stretches),
               end = points.begin() +
                     static_cast<std::ptrdiff_t>(points.size() * (s + 1) / stretches);
    const auto by_y = [](const auto& a, const auto& b) {
      return std::isfinite(a.second) && (!std::isfinite(b.second) || a.second < b.second);
    };
    const auto lowest = std::min_element(begin, end, by_y);
    const auto by_height = [](const auto& a, const auto& b) {
      return std::isfinite(b.second) && (!std::isfinite(a.second) || a.second < b.second);
    };
    const auto highest = std::max_element(begin, end, by_height);
    kept.push_back(*std::min(lowest, highest));
    if (lowest != highest) kept.push_back(*std::max(lowest, highest));
  }
  return kept;
}

std::string run_charts_json(const runs::RunLog& run, const runs::LearningRegime& learning) {
  Json charts = Json::array();
  charts.push_back(loss_chart(run, learning));
  const auto all = [&](double runs::StepRecord::*field) {
    return points_of(run, [&](const runs::StepRecord& record) { return record.*field; });
  };
  charts.push_back(
      chart_json({.title = "Learning rate", .y_label = "rate", .from_zero = true},
                 {{.name = "learning rate", .colour = 3, .points = all(&runs::StepRecord::lr)}}));
  charts.push_back(
      with_smooth({.title = "Gradient norm", .y_label = "norm before clipping", .log_y = true}, 0,
                  all(&runs::StepRecord::grad_norm)));
  charts.push_back(
      with_smooth({.title = "Throughput", .y_label = "tokens a second", .from_zero = true}, 0,
                  all(&runs::StepRecord::tokens_per_second)));
  charts.push_back(activations_chart(run));
  charts.push_back(with_smooth(
      {.title = "Model FLOPs utilisation", .y_label = "MFU", .unit = "%", .from_zero = true}, 4,
      optional_points(run, &runs::StepRecord::mfu)));
  charts.push_back(chart_json(
      {.title = "Memory of the process", .y_label = "bytes", .unit = "B", .from_zero = true},
      {{.name = "in use",
        .colour = 5,
        .points = optional_points(run, &runs::StepRecord::memory_bytes)}}));
  charts.push_back(memory_chart(run.facts));
  charts.push_back(roofline_chart(run.facts));
  Json drawn = Json::array();
  for (Json& chart : charts) {  // what a run did not record has no chart
    if (!chart.is_null() && !chart["series"].empty()) drawn.push_back(std::move(chart));
  }
  return dumped(drawn);
}

std::string compared_charts_json(const std::vector<NamedRun>& runs) {
  std::vector<Line> train, validation, rate;
  for (const NamedRun& named : runs) {
    const int colour = static_cast<int>(train.size());
    const Points raw = points_of(named.run, [](const runs::StepRecord& r) { return r.loss; });
    train.push_back({.name = named.name, .colour = colour, .points = smooth_line(raw)});
    validation.push_back(
        {.name = named.name,
         .colour = colour,
         .style = "dots",
         .points = optional_points(named.run, &runs::StepRecord::validation_loss)});
    rate.push_back({.name = named.name,
                    .colour = colour,
                    .points = points_of(
                        named.run, [](const runs::StepRecord& r) { return r.tokens_per_second; })});
  }
  const Json charts = {
      chart_json({.title = "Training loss, smoothed", .y_label = "nats a token", .wide = true},
                 train),
      chart_json({.title = "Validation loss", .y_label = "nats a token", .wide = true}, validation),
      chart_json({.title = "Throughput", .y_label = "tokens a second", .from_zero = true}, rate)};
  return dumped(charts);
}

}  // namespace brrr::report
