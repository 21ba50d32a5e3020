// brrr bench regimes: matrix products and elementwise work from tiny to large. First the call itself is
// the bound, then memory, then, where there is enough arithmetic, compute.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "brrr/base/units.h"
#include "brrr/cli/bench/bench.h"
#include "brrr/cli/rates_option.h"
#include "brrr/cost/calibrate.h"
#include "brrr/cost/predict.h"
#include "brrr/graph/trace.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/report/table.h"

namespace brrr::cli {
namespace {

struct Options {
  int64_t max_n = 4096;
  double max_seconds = 5;  // of one call; longer ones are predicted alone
  int rounds = 5;
  bool calibrate = false;
  RatesOption rates;
};

struct Experiment {
  const char* name;
  int operands;  // matrices of n x n, the result included
  runtime::CompiledFunction::Function function;
};

std::vector<Experiment> experiments() {
  return {{"matmul", 3, [](std::span<const Tensor> x) -> Tensors { return {matmul(x[0], x[0])}; }},
          {"neg", 2, [](std::span<const Tensor> x) -> Tensors { return {neg(x[0])}; }}};
}

struct Point {
  int64_t n;
  cost::KernelPrediction predicted;
  Cost cost;
  std::optional<double> seconds;
};

// From shapes alone: nothing is allocated.
Point predict_point(const Experiment& experiment, int64_t n, const hardware::Rates& rates) {
  const Tensor x = empty({n, n}, DType::f32, Device::null());
  graph::Tracer tracer;
  const Tensor handle = tracer.add_input(x.type(), x.device(), "x");
  const graph::Graph graph = tracer.finish(experiment.function({&handle, 1}));
  const compiler::KernelList list = compiler::lower(graph, compiler::fuse(graph));
  const cost::Prediction prediction = cost::predict(list, compiler::plan_memory(list), rates);
  return {n, prediction.kernels[0], list.kernels[0].cost, std::nullopt};
}

double physical_bytes() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
}

std::vector<Point> run_points(const Experiment& experiment, const Options& options,
                              const hardware::Rates& rates) {
  std::vector<Point> points;
  for (int64_t n = 16; n <= options.max_n; n *= 2) {
    Point point = predict_point(experiment, n, rates);
    const double bytes = 4.0 * static_cast<double>(n * n) * experiment.operands;
    if (point.predicted.seconds() < options.max_seconds && bytes < 0.5 * physical_bytes()) {
      const Tensor x = ones({n, n});
      runtime::CompiledFunction program(experiment.function, {});
      // Short calls many at a time, against the grain of the clock.
      const int calls = static_cast<int>(std::clamp(2e-4 / point.predicted.seconds(), 1.0, 100.0));
      const bool is_long = point.predicted.seconds() > 0.5;
      point.seconds = time_in_turn({[&] {
                                     for (int i = 0; i < calls; ++i) program.run({&x, 1});
                                   }},
                                   is_long ? 1 : options.rounds)[0] /
                      calls;
    }
    points.push_back(point);
  }
  return points;
}

void print_points(const Experiment& experiment, const std::vector<Point>& points) {
  report::Table table({"n", "ms", "predicted", "GFLOP/s", "GB/s", "bound by, predicted"},
                      fmt::format("{} of n x n", experiment.name));
  for (const Point& point : points) {
    const auto rate = [&](double amount) {
      return point.seconds ? fmt::format("{:.2f}", amount / *point.seconds / 1e9) : "";
    };
    table.row(point.n, point.seconds ? fmt::format("{:.4f}", 1e3 * *point.seconds) : "not run",
              fmt::format("{:.4f}", 1e3 * point.predicted.seconds()),
              rate(static_cast<double>(point.cost.flops)),
              rate(static_cast<double>(point.cost.bytes_read + point.cost.bytes_written)),
              cost::regime_name(point.predicted.regime()));
  }
  std::fputs(table.text().c_str(), stdout);
}

// The first n at which a condition holds, in words.
template <typename Holds>
std::string first_n(const std::vector<Point>& points, const Holds& holds) {
  for (const Point& point : points) {
    if (holds(point)) return join_text("n = ", point.n);
  }
  return "not reached";
}

// Measured: overhead ends where a call takes twice as long as the smallest; compute begins where half of
// the best FLOP/s is reached.
void print_crossings(const std::vector<Point>& points, bool has_compute) {
  double least = 1e9, best = 0;
  for (const Point& point : points) {
    if (!point.seconds) continue;
    least = std::min(least, *point.seconds);
    best = std::max(best, static_cast<double>(point.cost.flops) / *point.seconds);
  }
  report::Table table({"crossing", "predicted", "measured"});
  table.row("overhead ends",
            first_n(points,
                    [](const Point& p) { return p.predicted.regime() != cost::Regime::overhead; }),
            first_n(points, [&](const Point& p) { return p.seconds && *p.seconds > 2 * least; }));
  if (has_compute)
    table.row("compute begins",
              first_n(points,
                      [](const Point& p) { return p.predicted.regime() == cost::Regime::compute; }),
              first_n(points, [&](const Point& p) {
                return p.seconds && static_cast<double>(p.cost.flops) / *p.seconds > best / 2;
              }));
  std::printf("%s\n", table.text().c_str());
}

void run_regimes(const Options& options) {
  const hardware::Rates rates =
      options.calibrate ? cost::calibrate({.rounds = 3})
                        : find_rates(options.rates, compiler::target_of(default_device()));
  for (const Experiment& experiment : experiments()) {
    const std::vector<Point> points = run_points(experiment, options, rates);
    print_points(experiment, points);
    print_crossings(points, experiment.operands == 3);
  }
  std::printf("rates: %s%s\n", rates.source.c_str(),
              rates.calibrated ? "" : " (uncalibrated: run `brrr calibrate`)");
}

}  // namespace

void add_bench_regimes(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "regimes", "Matrix products and elementwise work over n: what bounds them, where it changes");
  const auto options = std::make_shared<Options>();
  command->add_option("--max-n", options->max_n, "Largest n, up to 16384")
      ->check(CLI::Range(16, 16384))
      ->capture_default_str();
  command
      ->add_option("--max-seconds", options->max_seconds,
                   "Calls predicted to take longer are not run")
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Measurements; medians count")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--calibrate", options->calibrate, "Measure the rates in the same run");
  add_rates_option(*command, options->rates);
  command->callback([options] { run_regimes(*options); });
}

}  // namespace brrr::cli
