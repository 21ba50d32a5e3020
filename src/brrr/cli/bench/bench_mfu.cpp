// brrr bench mfu: the lecture's experiment. One large product in each way that a GPU can multiply, five trials
// that are waited for, FLOP/s over the vendor's promise.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/cli/bench/bench.h"
#include "brrr/cli/device_option.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/device/gpu_info.h"
#include "brrr/hardware/hardware.h"
#include "brrr/hardware/measure_cuda.h"
#include "brrr/hardware/mfu.h"
#include "brrr/report/table.h"

namespace brrr::cli {
namespace {

struct Options {
  hardware::ProductSize size{.m = 16384, .n = 8192, .k = 32768};
  int trials = 5;
  bool json = false;
  DeviceOption device;
};

// What the lecture saw on its H100, with x [16384, 32768] of ones.
std::string lecture_mfu(hardware::ProductKind kind) {
  if (kind == hardware::ProductKind::f32) return "0.8";
  if (kind == hardware::ProductKind::bf16) return "about 0.3";
  return "";
}

struct Row {
  hardware::ProductKind kind;
  std::optional<Seconds> seconds;
  std::optional<FlopsPerSecond> promised;
};

std::vector<Row> measure(const Options& options, int gpu, std::string_view device) {
  std::vector<Row> rows;
  for (hardware::ProductKind kind : hardware::kProductKinds)
    rows.push_back({kind, hardware::time_product(gpu, kind, options.size, options.trials),
                    hardware::promised_product_rate(device, kind)});
  return rows;
}

double share(const hardware::ProductSize& size, Seconds seconds, FlopsPerSecond promised) {
  return hardware::mfu(size.flops() / seconds, promised);
}

void print_table(const std::vector<Row>& rows, const Options& options, const std::string& name) {
  const auto [m, n, k] = options.size;
  report::Table table({"factors", "ms", "TFLOP/s", "promised", "MFU", "lecture, H100"},
                      fmt::format("[{}, {}] @ [{}, {}] on {}, median of {} trials", m, k, k, n,
                                  name, options.trials));
  for (const Row& row : rows) {
    if (!row.seconds) {
      table.row(hardware::product_name(row.kind), "not on this GPU", "", "", "",
                lecture_mfu(row.kind));
      continue;
    }
    table.row(
        hardware::product_name(row.kind), fmt::format("{:.2f}", 1e3 * row.seconds->value()),
        fmt::format("{:.1f}", (options.size.flops() / *row.seconds).value() / 1e12),
        row.promised ? fmt::format("{:.1f}", row.promised->value() / 1e12) : "unknown",
        row.promised ? fmt::format("{:.3f}", share(options.size, *row.seconds, *row.promised)) : "",
        lecture_mfu(row.kind));
  }
  std::fputs(table.text().c_str(), stdout);
}

void print_json(const std::vector<Row>& rows, const Options& options, const std::string& name) {
  nlohmann::json result{{"gpu", name},
                        {"m", options.size.m},
                        {"n", options.size.n},
                        {"k", options.size.k},
                        {"products", nlohmann::json::array()}};
  for (const Row& row : rows) {
    nlohmann::json product{{"factors", hardware::product_name(row.kind)}};
    if (row.seconds) {
      product["seconds"] = row.seconds->value();
      product["flops_per_second"] = (options.size.flops() / *row.seconds).value();
      if (row.promised) product["mfu"] = share(options.size, *row.seconds, *row.promised);
    }
    result["products"].push_back(product);
  }
  std::puts(result.dump(1).c_str());
}

void run_mfu(const Options& options) {
  const GpuList list = list_gpus();
  check(!list.gpus.empty(), "bench mfu: there is no GPU: ", list.reason);
  const Device device = options.device.device();
  check(device.is_accelerator(), "bench mfu: ", device, " is no GPU; use --device cuda");
  const std::string& name = list.gpus[static_cast<size_t>(device.index)].name;
  const std::vector<Row> rows =
      measure(options, device.index, hardware::device_from_driver_name(name));
  options.json ? print_json(rows, options, name) : print_table(rows, options, name);
}

}  // namespace

void add_bench_mfu(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "mfu", "One large product in f32, tf32, f16, bf16 and fp8 on a GPU: FLOP/s and MFU");
  const auto options = std::make_shared<Options>();
  const auto size = [&](const char* name, int64_t& value, const char* words) {
    command->add_option(name, value, words)
        ->check(CLI::Range(int64_t{16}, int64_t{1} << 20))
        ->capture_default_str();
  };
  size("--m", options->size.m, "Rows of the result");
  size("--n", options->size.n, "Columns of the result");
  size("--k", options->size.k, "Products that are summed");
  command->add_option("--trials", options->trials, "Trials; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_device_option(*command, options->device);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run_mfu(*options); });
}

}  // namespace brrr::cli
