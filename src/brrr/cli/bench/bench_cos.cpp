// brrr bench cos: cos(cos(x)) op by op, fused, and the floor: the slower of copying x and of computing
// both cosines on data that is already in the L1 caches.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "brrr/base/units.h"
#include "brrr/cli/bench/bench.h"
#include "brrr/cli/bench/gpu_clock.h"
#include "brrr/cli/device_option.h"
#include "brrr/hardware/measure_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/random/random.h"
#include "brrr/report/table.h"
#include "brrr/runtime/compile.h"

namespace brrr::cli {
namespace {

struct Options {
  int64_t elements = 0;  // 2^22 on the cpu, 2^26 on a GPU
  int rounds = 15;
  DeviceOption device;
};

constexpr int64_t kPiece = int64_t{1} << 16;

void copy(const Tensor& x, const Tensor& y) {
  const auto* from = x.data<float>();
  auto* to = y.data<float>();
  thread_pool().for_each_piece(x.numel() / kPiece, [&](int64_t piece) {
    hardware::copy_floats(to + piece * kPiece, from + piece * kPiece, kPiece,
                          hardware::Stores::streaming);
  });
}

// As many cosines as cos(cos(x)) takes, a tile at a time over and over.
void cosines(int64_t count) {
  const TileFn tile = cos_op.tiles().f32;
  thread_pool().for_each_piece(count / kPiece, [&](int64_t) {
    alignas(64) float values[kTileElements], results[kTileElements];
    for (int64_t i = 0; i < kTileElements; ++i) values[i] = static_cast<float>(i) / kTileElements;
    static const Attrs none{};
    for (int64_t i = 0; i < kPiece / kTileElements; ++i) {
      tile({.inputs = {values}, .output = results, .count = kTileElements, .attrs = &none});
      tile({.inputs = {results}, .output = values, .count = kTileElements, .attrs = &none});
    }
  });
}

void run_cos_on_gpu(const Options& options, Device device) {
  const DeviceScope scope(device);
  const cuda::Stream stream = cuda::stream(device.index);
  const Tensor x = to(normal({options.elements}, RandomKey{.seed = 1}), device);
  const Tensor y = empty({options.elements}, DType::f32, device);
  auto fused = runtime::compile([](const Tensor& value) { return cos(cos(value)); });
  const auto bytes = static_cast<size_t>(4 * options.elements);
  const double copy = gpu_seconds(stream, options.rounds, [&] {
    cuda::copy_on_device(y.storage().data(), x.storage().data(), bytes, stream);
  });
  const double eager = gpu_seconds(stream, options.rounds, [&] { cos(cos(x)); });
  const double one = gpu_seconds(stream, options.rounds, [&] { fused(x); });
  report::Table table({"cos(cos(x))", "ms", "GB/s", "of the copy"},
                      fmt::format("{} floats, {}", with_commas(options.elements), to_text(device)));
  const auto row = [&](const char* name, double time, double passes) {
    table.row(name, fmt::format("{:.4f}", 1e3 * time),
              fmt::format("{:.0f}", passes * 2 * static_cast<double>(bytes) / time / 1e9),
              fmt::format("{:.2f}x", time / copy));
  };
  row("eager, two passes", eager, 2);
  row("fused, one pass", one, 1);
  row("copy x to y", copy, 1);
  std::fputs(table.text().c_str(), stdout);
}

void run_cos(Options options) {
  const Device device = options.device.device();
  const bool is_gpu = device.is_accelerator();
  if (options.elements == 0) options.elements = int64_t{1} << (is_gpu ? 26 : 22);
  if (is_gpu) return run_cos_on_gpu(options, device);
  const int64_t count = (options.elements + kPiece - 1) / kPiece * kPiece;
  const Tensor x = normal({count}, RandomKey{.seed = 1}), y = empty({count});
  auto fused = runtime::compile([](const Tensor& value) { return cos(cos(value)); });
  const std::vector<double> seconds = time_in_turn(
      {[&] { cos(cos(x)); }, [&] { fused(x); }, [&] { copy(x, y); }, [&] { cosines(count); }},
      options.rounds);
  const double eager = seconds[0], one = seconds[1], floor = std::max(seconds[2], seconds[3]);
  const auto n = static_cast<double>(count);
  report::Table table(
      {"cos(cos(x))", "ms", "GB/s", "of the floor"},
      fmt::format("{} floats, {} threads", with_commas(count), thread_pool().threads()));
  const auto row = [&](const char* name, double time, double bytes) {
    table.row(name, fmt::format("{:.3f}", 1e3 * time), fmt::format("{:.1f}", bytes / time / 1e9),
              fmt::format("{:.2f}x", time / floor));
  };
  row("eager, two passes", eager, 16 * n);
  row("fused, one pass", one, 8 * n);
  row("copy x to y", seconds[2], 8 * n);
  row("both cosines, L1-resident", seconds[3], 8 * n);
  std::fputs(table.text().c_str(), stdout);
  std::printf("\nfused is %.2fx faster than eager, and %.2fx the floor (%s)\n", eager / one,
              one / floor, seconds[2] > seconds[3] ? "the copy" : "the cosines");
}

}  // namespace

void add_bench_cos(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("cos", "cos(cos(x)): eager, fused, and the floor");
  const auto options = std::make_shared<Options>();
  command->add_option("--elements", options->elements, "Floats in x (2^22; 2^26 on a GPU)")
      ->check(CLI::Range(kPiece, int64_t{1} << 30));
  command->add_option("--rounds", options->rounds, "Measurements; medians count")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_device_option(*command, options->device);
  command->callback([options] { run_cos(*options); });
}

}  // namespace brrr::cli
