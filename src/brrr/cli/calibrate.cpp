// brrr calibrate: how fast this machine runs each family of kernels, kept for predictions.
#include "brrr/cost/calibrate.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "brrr/base/join_names.h"
#include "brrr/base/units.h"
#include "brrr/cli/commands.h"
#include "brrr/cli/device_option.h"
#include "brrr/cli/machine_rates.h"
#include "brrr/cli/model_options.h"
#include "brrr/cost/calibrate_cuda.h"
#include "brrr/report/progress.h"
#include "brrr/report/table.h"
#include "brrr/runtime/stages.h"

namespace brrr::cli {
namespace {

struct Options {
  ModelOptions model;
  std::string out;
  int rounds = 7;
  bool json = false;
  DeviceOption device;
};

std::string value_text(const hardware::RateGrid& grid, double value) {
  if (grid.unit == "s") return to_text(Seconds(value));
  if (grid.unit == "flop/s") return to_text(FlopsPerSecond(value));
  if (grid.unit == "byte/s") return to_text(BytesPerSecond(value));
  return grid.unit == "ratio" ? fmt::format("{:.2f}x", value)
                              : fmt::format("{:.2f} G/s", value / 1e9);
}

std::string axes_text(const hardware::RateGrid& grid) {
  return join_names(grid.axes, [](const hardware::RateAxis& axis) {
    return fmt::format("{} {:g}..{:g}", axis.name, axis.points.front(), axis.points.back());
  });
}

void print_table(const hardware::Rates& rates) {
  report::Table table({"family", "slowest", "fastest", "over"},
                      rates.machine + ", " + rates.source);
  for (const auto& [family, grid] : rates.grids) {
    if (family.starts_with("tile.") || family.starts_with("kernel.")) continue;
    const auto [least, most] = std::minmax_element(grid.values.begin(), grid.values.end());
    table.row(family, value_text(grid, *least), value_text(grid, *most), axes_text(grid));
  }
  std::fputs(table.text().c_str(), stdout);
  report::Table kernels({"product or attention by itself", "seconds"});
  bool has_kernels = false;
  for (const auto& [family, grid] : rates.grids) {
    if (!family.starts_with("kernel.")) continue;
    kernels.row(family.substr(7), value_text(grid, grid.values[0]));
    has_kernels = true;
  }
  if (has_kernels) std::printf("\n%s", kernels.text().c_str());
  report::Table tiles({"tile primitive", "elements a second, one thread"});
  for (const auto& [family, grid] : rates.grids) {
    if (family.starts_with("tile.")) tiles.row(family.substr(5), value_text(grid, grid.values[0]));
  }
  std::printf("\n%s", tiles.text().c_str());
}

hardware::Rates measure_gpu(const Options& options, Device device) {
  std::unique_ptr<report::Progress> progress;
  cost::CalibrateCudaOptions calibrate{
      .rounds = options.rounds, .on_case = [&](int number, int cases) {
        if (!progress) progress = std::make_unique<report::Progress>(cases, stderr);
        progress->update(number, "cases");
      }};
  std::optional<runtime::PlannedProgram> program;
  if (!options.model.model.empty()) {
    program =
        training::plan_step(training::on_paper(options.model.on(compiler::target_of(device))));
    calibrate.programs = {&program->kernels};
    calibrate.programs_name = fmt::format("{}, {}", options.model.text(), options.model.precision);
  }
  hardware::Rates rates = cost::calibrate_cuda(device, calibrate);
  progress->finish();
  return rates;
}

hardware::Rates measure(const Options& options, Device device) {
  if (!device.is_accelerator()) {
    report::Progress progress(options.rounds, stderr);
    hardware::Rates rates = cost::calibrate({.rounds = options.rounds, .on_round = [&](int round) {
                                               progress.update(round, "rounds");
                                             }});
    progress.finish();
    return rates;
  }
  return measure_gpu(options, device);
}

void run_calibrate(const Options& options) {
  const DeviceScope scope(options.device.device());
  check(options.model.model.empty() || default_device().is_accelerator(),
        "calibrate: --model is for a GPU; on the cpu families alone are measured");
  const std::string path = options.out.empty() ? machine_rates_path() : options.out;
  const hardware::Rates rates = measure(options, default_device());
  hardware::save_rates(rates, path);
  if (options.json) {
    std::fputs(hardware::to_json(rates).c_str(), stdout);
    return;
  }
  print_table(rates);
  std::printf("\nwritten to %s\n", path.c_str());
}

}  // namespace

void add_calibrate(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measure each family of kernels on fixed shapes, for predictions");
  const auto options = std::make_shared<Options>();
  command->add_option("--out", options->out, "File to write; one in the user's cache by default");
  command->add_option("--rounds", options->rounds, "Visits to every case; medians count")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print what is written");
  add_model_options(*command, options->model)
      ->description(
          "On a GPU: measure the products and attention of this model's step too, each "
          "by itself");
  add_device_option(*command, options->device);
  command->footer(
      "Leave the machine alone meanwhile (about 20 s; on a GPU a minute). Where nobody "
      "calibrated,\n"
      "`brrr train` measures coarser rates in 2 s, which these replace.\nExamples:\n"
      "  brrr calibrate\n"
      "  brrr calibrate --device cuda --model gpt2-124m --batch 64 --seq 1024 --precision bf16\n"
      "  brrr calibrate --out rates.json && brrr profile --model char-gpt --rates rates.json");
  command->callback([options] { run_calibrate(*options); });
}

}  // namespace brrr::cli
