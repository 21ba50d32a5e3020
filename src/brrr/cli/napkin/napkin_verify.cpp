// brrr napkin verify: a step predicted, run here, and reconciled.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/cli/device_option.h"
#include "brrr/cli/exit_codes.h"
#include "brrr/cli/model_options.h"
#include "brrr/cli/napkin/napkin.h"
#include "brrr/cli/rates_option.h"
#include "brrr/plan/verify.h"

namespace brrr::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  ModelOptions model;
  std::string rates;
  DeviceOption device;
  int steps = 5, rows = 12;
  std::optional<double> given_band;
  bool json = false;
  // A cpu shares its clock and memory with everybody else; a GPU is alone.
  double band() const {
    return given_band.value_or(device.device().is_accelerator() ? 0.10 : 0.15);
  }
};

Json driver_json(const plan::DriverMemory& driver) {
  return {{"books_bytes", driver.books},
          {"held_bytes", driver.held},
          {"used_bytes", driver.used},
          {"context_and_code_bytes", driver.used - driver.held}};
}

void print_json(const plan::Verification& v, const Options& options) {
  Json memory = Json::array(), kernels = Json::array();
  for (const plan::MemoryLine& line : v.memory)
    memory.push_back({{"what", line.what},
                      {"predicted_bytes", line.predicted},
                      {"measured_bytes", line.measured}});
  for (const plan::ProfileRow& row : plan::rows_by_label(v.profile))
    kernels.push_back({{"kernel", row.label},
                       {"calls", row.calls},
                       {"predicted_seconds", row.predicted},
                       {"measured_seconds", row.seconds},
                       {"regime", cost::regime_name(row.regime())}});
  Json json{{"model", options.model.model},
            {"params", v.parameters},
            {"predicted_step_seconds", v.predicted_seconds},
            {"measured_step_seconds", v.measured_seconds},
            {"error", v.error()},
            {"band", options.band()},
            {"between_kernels_seconds", v.between_kernels()},
            {"memory_exact", v.memory_is_exact()},
            {"memory", memory},
            {"kernels", kernels}};
  if (v.driver) json["driver"] = driver_json(*v.driver);
  std::puts(json.dump(1).c_str());
}

void print_tables(const plan::Verification& v, const Options& options) {
  report::Table memory(
      {"memory", "predicted B", "measured B", "residual B"},
      fmt::format("{}: {} parameters", options.model.text(), with_commas(v.parameters)));
  for (const plan::MemoryLine& line : v.memory)
    memory.row(line.what, with_commas(line.predicted), with_commas(line.measured),
               with_commas(line.measured - line.predicted));
  print_table(memory);
  if (v.driver)
    std::printf(
        "The driver has %s in use: %s on brrr's books, %s for whole blocks, and %s of context, "
        "code, "
        "libraries and other processes.\n",
        to_text(Bytes(v.driver->used)).c_str(), to_text(Bytes(v.driver->books)).c_str(),
        to_text(Bytes(v.driver->held - v.driver->books)).c_str(),
        to_text(Bytes(v.driver->used - v.driver->held)).c_str());
  report::Table time(
      {"kernels", "calls", "predicted ms", "measured ms", "residual ms", "share", "regime"});
  const double all = v.measured_seconds;
  int shown = 0;
  double rest_predicted = 0, rest_measured = 0;
  for (const plan::ProfileRow& row : plan::rows_by_label(v.profile)) {
    if (shown++ >= options.rows) {
      rest_predicted += row.predicted, rest_measured += row.seconds;
      continue;
    }
    time.row(row.label, row.calls, fmt::format("{:.3f}", 1e3 * row.predicted),
             fmt::format("{:.3f}", 1e3 * row.seconds),
             fmt::format("{:+.3f}", 1e3 * (row.seconds - row.predicted)),
             fmt::format("{:+.1f} %", 100 * (row.seconds - row.predicted) / all),
             cost::regime_name(row.regime()));
  }
  const auto line = [&](const char* name, double predicted, double measured) {
    time.row(name, "", fmt::format("{:.3f}", 1e3 * predicted),
             fmt::format("{:.3f}", 1e3 * measured),
             fmt::format("{:+.3f}", 1e3 * (measured - predicted)),
             fmt::format("{:+.1f} %", 100 * (measured - predicted) / all), "");
  };
  line("all others", rest_predicted, rest_measured);
  line("between kernels", 0, v.between_kernels());
  time.rule();
  line("step", v.predicted_seconds, v.measured_seconds);
  std::puts("");
  print_table(time);
  std::printf("\nStep: predicted %s, measured %s, %+.1f %%. Memory: %s.\n",
              to_text(Seconds(v.predicted_seconds)).c_str(),
              to_text(Seconds(v.measured_seconds)).c_str(), 100 * v.error(),
              v.memory_is_exact() ? "exact to the byte" : "differs");
}

void run(const Options& options) {
  std::optional<hardware::Rates> rates;
  if (!options.rates.empty()) rates = hardware::load_rates(options.rates);
  const plan::Verification v =
      plan::verify_step(options.model.on(options.device.target()),
                        {.steps = options.steps, .rates = rates ? &*rates : nullptr});
  options.json ? print_json(v, options) : print_tables(v, options);
  if (!v.memory_is_exact()) throw CheckFailed("the memory of the step is not what was predicted");
  if (std::abs(v.error()) > options.band())
    throw CheckFailed(
        fmt::format("the step time is {:+.1f} % from the prediction, outside +-{:.0f} %",
                    100 * v.error(), 100 * options.band()));
}

}  // namespace

void add_napkin_verify(CLI::App& napkin) {
  CLI::App* command =
      napkin.add_subcommand("verify", "Predict a step, run it here, and reconcile the two");
  const auto options = std::make_shared<Options>();
  add_model_options(*command, options->model)->required();
  command->add_option("--steps", options->steps, "Steps to measure; medians count")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--rates", options->rates,
                      "File of `brrr calibrate`; measured between the steps by default");
  command
      ->add_option("--band", options->given_band,
                   "Largest error of the step time; 0.15 on a cpu, 0.10 on a GPU")
      ->check(CLI::Range(0.0, 100.0));
  add_device_option(*command, options->device);
  command->add_option("--rows", options->rows, "Kinds of kernels to list")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Ends with 1 when memory differs by a byte or time by more than the band.\nExamples:\n"
      "  brrr napkin verify --model char-gpt --batch 8 --seq 128\n"
      "  brrr napkin verify --model cnn --batch 64\n"
      "  brrr napkin verify --model gpt2-124m --batch 64 --seq 1024 --precision bf16 --device "
      "cuda");
  command->callback([options, command] {
    const std::string& model = options->model.model;
    check((model != "cnn" && model != "mlp") || command->count("--seq") == 0, model,
          " learns from images: --seq is not taken");
    run(*options);
  });
}

}  // namespace brrr::cli
