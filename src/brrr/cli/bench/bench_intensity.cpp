// brrr bench intensity: x * 2 repeated r times, fused. While memory is the bound, more arithmetic is free;
// where the time begins to grow is the ridge.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "brrr/base/units.h"
#include "brrr/cli/bench/bench.h"
#include "brrr/cli/bench/gpu_clock.h"
#include "brrr/cli/device_option.h"
#include "brrr/device/gpu_info.h"
#include "brrr/hardware/measure.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/report/plot.h"
#include "brrr/report/table.h"
#include "brrr/runtime/compile.h"

namespace brrr::cli {
namespace {

struct Options {
  int64_t elements = int64_t{1} << 24;
  int rounds = 7;
  DeviceOption device;
};

// Fused regions hold 48 nodes; a longer chain would be two kernels and read its values again.
constexpr int kRepeats[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};

runtime::CompiledFunction doubled(int repeats) {
  return {[repeats](std::span<const Tensor> x) -> Tensors {
            Tensor y = x[0];
            for (int i = 0; i < repeats; ++i) y = y * 2.0;
            return {y};
          },
          {}};
}

struct Point {
  int repeats;
  double seconds;
};

std::vector<Point> measure_points(const Tensor& x, int rounds) {
  std::vector<std::unique_ptr<runtime::CompiledFunction>> programs;
  std::vector<std::function<void()>> work;
  for (int repeats : kRepeats) {
    programs.push_back(std::make_unique<runtime::CompiledFunction>(doubled(repeats)));
    work.emplace_back([&x, program = programs.back().get()] { program->run({&x, 1}); });
  }
  const std::vector<double> seconds = time_in_turn(work, rounds);
  std::vector<Point> points;
  for (size_t i = 0; i < seconds.size(); ++i) points.push_back({kRepeats[i], seconds[i]});
  return points;
}

// FLOP/s of the longest chain on data that stays in the L1 caches: what this path can reach at all.
double path_roof(int rounds) {
  constexpr int64_t kPerThread = 4096;  // 16 KiB in, 16 KiB out
  constexpr int kRepeat = 48, kCalls = 200;
  const Tensor x = zeros({kPerThread});
  runtime::CompiledFunction program = doubled(kRepeat);
  const double seconds = time_in_turn({[&] {
                                        for (int i = 0; i < kCalls; ++i) program.run({&x, 1});
                                      }},
                                      rounds)[0];
  return kRepeat * static_cast<double>(kPerThread) * kCalls / seconds *
         thread_pool().threads();  // so few elements run on one thread
}

// One multiplication a lane and clock.
double gpu_roof(int device) {
  constexpr double kLanes =
      128;  // of a multiprocessor, f32, since compute capability 8.6; 64 on 8.0
  const GpuInfo gpu = list_gpus().gpus[static_cast<size_t>(device)];
  const double lanes = gpu.major == 8 && gpu.minor == 0 ? kLanes / 2 : kLanes;
  return gpu.multiprocessors * lanes * gpu.clock_mhz * 1e6;
}

void run_intensity_on_gpu(const Options& options, Device device) {
  constexpr int kGpuRepeats[] = {1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256};
  const DeviceScope scope(device);
  const Tensor x = zeros({options.elements});
  const auto n = static_cast<double>(options.elements);
  report::Table table({"r", "ms", "FLOP per byte", "GFLOP/s", "GB/s", "time / time at r = 1"},
                      fmt::format("x * 2, r times, fused, {} floats, {}",
                                  with_commas(options.elements), to_text(device)));
  std::vector<Point> points;
  for (const int repeats : kGpuRepeats) {
    runtime::CompiledFunction program = doubled(repeats);
    const double seconds = gpu_seconds(cuda::stream(device.index), options.rounds, [&] {
      program.run({&x, 1});
    });
    points.push_back({repeats, seconds});
    table.row(repeats, fmt::format("{:.4f}", 1e3 * seconds), fmt::format("{:.3f}", repeats / 8.0),
              fmt::format("{:.0f}", repeats * n / seconds / 1e9),
              fmt::format("{:.0f}", 8 * n / seconds / 1e9),
              fmt::format("{:.2f}", seconds / points[0].seconds));
  }
  std::fputs(table.text().c_str(), stdout);
  const Point &first = points[0], &last = points.back(), &before = points[points.size() - 2];
  const double slope = (last.seconds - before.seconds) / (last.repeats - before.repeats);
  const double found = first.seconds / slope / 8, bandwidth = 8 * n / first.seconds,
               expected = gpu_roof(device.index) / bandwidth;
  std::printf(
      "\nridge found: %.2f FLOP per byte; roof of multiplications over bandwidth: %.2f (%s over "
      "%s); found / expected %.2f\n",
      found, expected, to_text(FlopsPerSecond(gpu_roof(device.index))).c_str(),
      to_text(BytesPerSecond(bandwidth)).c_str(), found / expected);
}

void run_intensity(const Options& options) {
  if (const Device device = options.device.device(); device.is_accelerator())
    return run_intensity_on_gpu(options, device);
  const Tensor x = zeros({options.elements});
  const std::vector<Point> points = measure_points(x, options.rounds);
  const auto n = static_cast<double>(options.elements);
  const double bytes = 8 * n;  // each element read once and written once
  report::Table table(
      {"r", "ms", "FLOP per byte", "GFLOP/s", "GB/s", "time / time at r = 1"},
      fmt::format("x * 2, r times, fused, {} floats", with_commas(options.elements)));
  std::vector<double> gflops;
  for (const Point& point : points) {
    gflops.push_back(point.repeats * n / point.seconds / 1e9);
    table.row(point.repeats, fmt::format("{:.3f}", 1e3 * point.seconds),
              fmt::format("{:.3f}", point.repeats / 8.0), fmt::format("{:.2f}", gflops.back()),
              fmt::format("{:.2f}", bytes / point.seconds / 1e9),
              fmt::format("{:.2f}", point.seconds / points[0].seconds));
  }
  std::fputs(table.text().c_str(), stdout);
  std::printf("\n%s",
              report::line_plot(gflops, {.height = 10,
                                         .title = "GFLOP/s against r (the rows of the table)",
                                         .x_label = "row"})
                  .c_str());
  // Two lines: flat while memory is the bound, rising by what one more multiplication takes.
  const Point &first = points[0], &last = points.back(), &before = points[points.size() - 2];
  const double slope = (last.seconds - before.seconds) / (last.repeats - before.repeats);
  const double ridge = first.seconds / slope / 8, path = n / slope,
               roof = path_roof(options.rounds);
  const double peak = hardware::measure_peak().value(), bandwidth = bytes / first.seconds;
  report::Table summary({"", "value", ""});
  summary.row("ridge found", fmt::format("{:.2f} FLOP per byte", ridge),
              fmt::format("at r = {:.1f} the time begins to grow", 8 * ridge));
  summary.row("ridge of this path", fmt::format("{:.2f} FLOP per byte", roof / bandwidth),
              "its roof over the bandwidth at r = 1");
  summary.row("ridge of the machine", fmt::format("{:.2f} FLOP per byte", peak / bandwidth),
              "peak of multiply-adds between registers over the same bandwidth");
  summary.row("bandwidth at r = 1", to_text(BytesPerSecond(bandwidth)), "read and written");
  summary.row("reached by a longer chain", to_text(FlopsPerSecond(path)), "from the slope");
  summary.row("roof of this path", to_text(FlopsPerSecond(roof)),
              "the same chain within the L1 caches: one FLOP an instruction, tile by tile");
  summary.row("peak of the machine", to_text(FlopsPerSecond(peak)), "two FLOPs an instruction");
  std::printf("\n%s", summary.text().c_str());
}

}  // namespace

void add_bench_intensity(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "intensity", "x * 2 repeated r times, fused: FLOP/s and GB/s, the ridge");
  const auto options = std::make_shared<Options>();
  command->add_option("--elements", options->elements, "Floats in x")
      ->check(CLI::Range(int64_t{1024}, int64_t{1} << 30))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Measurements of each r; medians count")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_device_option(*command, options->device);
  command->callback([options] { run_intensity(*options); });
}

}  // namespace brrr::cli
