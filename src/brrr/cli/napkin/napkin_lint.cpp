// brrr napkin lint: sizes of a model that waste a device.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/cli/napkin/napkin.h"
#include "brrr/plan/lint.h"
#include "brrr/plan/model/model_limits.h"

namespace brrr::cli {
namespace {

struct Options {
  ModelChoice model;
  GpuChoice gpu;
  plan::LintOptions lint;
  bool json = false;
};

void run(const Options& options) {
  const hardware::GpuSpec& gpu = hardware::find_gpu(chosen_gpu(options.gpu));
  const plan::NamedModel model = plan::find_model(options.model.model, options.model.shape);
  const std::vector<plan::LintFinding> findings = plan::lint(model.config, gpu, options.lint);
  if (options.json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const plan::LintFinding& f : findings)
      rows.push_back({{"what", f.what}, {"rule", f.rule}, {"change", f.change}, {"gain", f.gain}});
    std::puts(rows.dump(1).c_str());
    return;
  }
  if (findings.empty()) {
    std::printf("%s has no sizes that waste a %s.\n", model.name.c_str(), gpu.name.c_str());
    return;
  }
  report::Table table(
      {"what", "why", "better", "gain"},
      fmt::format("{} on {}, {} tokens at a time", model.name, gpu.name, options.lint.tokens));
  for (const plan::LintFinding& f : findings)
    table.row(f.what, f.rule, f.change,
              f.gain > 0 ? fmt::format("{:.1f} %", 100 * f.gain) : "0 % on one device");
  print_table(table);
  print_assumptions(
      {"a gain is a share of the time of products and attention, forward and backward; where a "
       "model becomes another, of the time of a FLOP",
       "tiles of 128 x 128, 128 x 256 from Hopper on, one a multiprocessor; rows that do not start "
       "on 16 bytes at 50 to 80 % of the rate (a rule of thumb, not measured)"});
}

}  // namespace

void add_napkin_lint(CLI::App& napkin) {
  CLI::App* command = napkin.add_subcommand(
      "lint", "Sizes of a model that waste a device, with the gain of better ones");
  const auto options = std::make_shared<Options>();
  add_model_choice(*command, options->model, false);
  add_gpu_choice(*command, options->gpu, false);
  command->add_option("--tokens", options->lint.tokens, "Of a micro-batch")
      ->check(CLI::Range(int64_t{1}, static_cast<int64_t>(plan::kMostTokens)))
      ->capture_default_str();
  command->add_option("--tp", options->lint.tp, "Tensor-parallel devices")
      ->check(CLI::Range(int64_t{1}, plan::kMostDevices))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->footer("Example:\n  brrr napkin lint --model gpt2-124m --gpu h100");
  command->callback([options] { run(*options); });
}

}  // namespace brrr::cli
