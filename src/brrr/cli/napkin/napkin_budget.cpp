// brrr napkin budget: what devices can compute in some days, and what that is worth.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/cli/napkin/napkin.h"
#include "brrr/plan/budget.h"

namespace brrr::cli {
namespace {

constexpr double kMostTokensOfAParameter = 1e9;

struct Options {
  GpuChoice gpu;
  double days = 0, mfu = 1, ratio = 20;
  std::string precision = "bf16";
  bool json = false;
};

void run(const Options& options) {
  const hardware::GpuSpec& gpu = hardware::find_gpu(chosen_gpu(options.gpu));
  check(options.days > 0 && options.days <= 36500, options.days,
        " days make no sense; use more than 0 and at most 36,500");
  check(options.mfu > 0 && options.mfu <= 1, "an mfu of ", options.mfu, " is not in (0, 1]");
  check(options.ratio > 0 && options.ratio <= kMostTokensOfAParameter, options.ratio,
        " tokens a parameter make no sense; use more than 0 and at most ", kMostTokensOfAParameter);
  const hardware::PeakRate& peak = gpu.peak(hardware::parse_arithmetic(options.precision));
  const double available = static_cast<double>(options.gpu.count) * peak.dense.value() *
                           options.mfu * options.days * 86400;
  const plan::ComputeOptimal best = plan::compute_optimal(available, options.ratio);
  const std::vector<std::string> assumptions{
      fmt::format("peak of {} in {}: {}, dense ({})", gpu.name, hardware::to_text(peak.arithmetic),
                  to_text(peak.dense), peak.source),
      options.mfu == 1
          ? std::string("MFU 1: every FLOP of the peak; real runs reach 0.3 to 0.5 (--mfu)")
          : fmt::format("MFU {}", options.mfu),
      fmt::format("{:g} tokens a parameter (Chinchilla); models that are used a lot train on more",
                  options.ratio)};
  if (options.json) {
    nlohmann::ordered_json runs = nlohmann::ordered_json::array();
    for (const plan::KnownRun& run : plan::known_runs())
      runs.push_back({{"name", run.name}, {"flops", run.flops}, {"share", available / run.flops}});
    nlohmann::ordered_json json{{"gpu", gpu.name},
                                {"count", options.gpu.count},
                                {"days", options.days},
                                {"mfu", options.mfu},
                                {"total_flops", available},
                                {"optimal_params", best.parameters},
                                {"optimal_tokens", best.tokens},
                                {"known_runs", runs},
                                {"assumptions", assumptions}};
    std::puts(json.dump(1).c_str());
    return;
  }
  report::Table table =
      napkin_table(fmt::format("{} x {} for {} days", options.gpu.count, gpu.name, options.days));
  table.row("FLOPs available", flops_text(available),
            fmt::format("{} x {} x {} x {} d x 86400 s", options.gpu.count, to_text(peak.dense),
                        options.mfu, options.days));
  table.row("compute-optimal model", fmt::format("{:.3g} parameters", best.parameters),
            fmt::format("sqrt(C / (6 x {:g}))", options.ratio));
  table.row("on", fmt::format("{:.3g} tokens", best.tokens),
            fmt::format("{:g} a parameter", options.ratio));
  print_table(table);
  report::Table runs({"beside", "FLOPs", "budget / run", "source"});
  for (const plan::KnownRun& known : plan::known_runs())
    runs.row(known.name, fmt::format("{:.3g}", known.flops),
             fmt::format("{:.3g}", available / known.flops), known.source);
  std::puts("");
  print_table(runs);
  print_assumptions(assumptions);
}

}  // namespace

void add_napkin_budget(CLI::App& napkin) {
  CLI::App* command = napkin.add_subcommand("budget", "FLOPs of some devices over some days");
  const auto options = std::make_shared<Options>();
  add_gpu_choice(*command, options->gpu);
  command->add_option("--days", options->days, "How long")->required();
  command->add_option("--mfu", options->mfu, "Share of the peak that is reached")
      ->capture_default_str();
  command->add_option("--precision", options->precision, "fp32, tf32, fp16, bf16, fp8, fp4 or int8")
      ->capture_default_str();
  command->add_option("--tokens-per-param", options->ratio, "Of a compute-optimal model")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->footer("Example:\n  brrr napkin budget --gpu h100 --count 8 --days 7 --mfu 0.5");
  command->callback([options] { run(*options); });
}

}  // namespace brrr::cli
