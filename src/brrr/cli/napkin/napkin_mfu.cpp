// brrr napkin mfu: one speed under every convention in the wild.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "brrr/cli/napkin/napkin.h"
#include "brrr/plan/gpu_rates.h"
#include "brrr/plan/model/model_limits.h"

namespace brrr::cli {
namespace {

struct Options {
  ModelChoice model;
  GpuChoice gpu;
  std::optional<double> tokens_per_second, mfu;  // one of them
  int64_t seq = 0;                               // 0: not given
  std::string from, precision = "bf16", recompute = "none";
  bool json = false;
};

// The speed as it is given, or that of an MFU under a convention at `peak` FLOPs a second of all devices.
double speed_of(const Options& options, const plan::FlopFacts& facts, double peak) {
  check(options.tokens_per_second.has_value() != options.mfu.has_value(),
        "give one of --tokens-per-second and --mfu with --from CONVENTION");
  check(options.mfu.has_value() == !options.from.empty(),
        "an MFU is a number under a convention: --mfu and --from go together");
  if (const double mfu = options.mfu.value_or(0); options.mfu) {
    check(mfu > 0 && mfu <= 1, "--mfu ", mfu,
          " is not in (0, 1]: nothing runs above its peak. 50 per cent are 0.5");
    return mfu * peak / plan::flops_per_token(plan::parse_convention(options.from), facts);
  }
  const double speed = options.tokens_per_second.value_or(0);
  check(!(speed < 0), "--tokens-per-second ", speed, " is below 0");
  check(speed > 0, "--tokens-per-second ", speed, " is no speed; use a number above 0");
  return speed;
}

void run(const Options& options) {
  const hardware::GpuSpec& gpu = hardware::find_gpu(chosen_gpu(options.gpu));
  const plan::NamedModel model = chosen_model(options.model, options.seq);
  const compiler::Precision precision = compiler::parse_precision(options.precision);
  const compiler::RematPolicy recompute = compiler::parse_policy(options.recompute);
  check(recompute != compiler::RematPolicy::budget,
        "--recompute budget has no count of its own; use none, selective or full");
  const hardware::PeakRate& peak = gpu.peak(plan::arithmetic_of(precision));
  const int64_t seq =
      options.seq > 0 ? options.seq : std::min<int64_t>(8192, context_of(model.config));
  plan::check_positions(model.config, seq);
  const plan::StepCost cost =
      plan::model_cost(model.config, {.seq = seq, .precision = precision, .recompute = recompute},
                       plan::gpu_rates(gpu, precision))
          .total();
  const plan::FlopFacts facts = plan::flop_facts(model.config, cost, seq);
  const double all = peak.dense.value() * static_cast<double>(options.gpu.count);
  const double speed = speed_of(options, facts, all);

  nlohmann::ordered_json json{
      {"model", model.name},        {"gpu", gpu.name},
      {"count", options.gpu.count}, {"seq", seq},
      {"tokens_per_second", speed}, {"peak_flops_per_second", peak.dense.value()}};
  report::Table table({"convention", "FLOPs a token", "MFU", "HFU", "formula", "used by"},
                      fmt::format("{} at {:.5g} tokens/s on {} x {} ({} {} dense), sequences of {}",
                                  model.name, speed, options.gpu.count, gpu.name,
                                  to_text(peak.dense), hardware::to_text(peak.arithmetic), seq));
  for (int i = 0; i < plan::kConventions; ++i) {
    const auto convention = static_cast<plan::Convention>(i);
    const double flops = plan::flops_per_token(convention, facts), share = flops * speed / all;
    const double with_again =
        (flops + plan::recomputed_per_token(convention, facts, recompute)) * speed / all;
    table.row(plan::info_of(convention).name, fmt::format("{:.4g}", flops),
              fmt::format("{:.2f} %", 100 * share), fmt::format("{:.2f} %", 100 * with_again),
              plan::info_of(convention).formula, plan::info_of(convention).used_by);
    json["mfu"][std::string(plan::info_of(convention).name)] = share;
    json["hfu"][std::string(plan::info_of(convention).name)] = with_again;
  }
  // Speed of light: each product at the peak of its own type; the head and attention stay in 16 bits.
  const hardware::PeakRate* half = gpu.find(hardware::Arithmetic::bf16);
  const double half_peak = half ? half->dense.value() : peak.dense.value();
  const double low = 6 * facts.products - 3 * facts.head,
               high = 3 * facts.head + 3 * facts.attention;
  const double light = low / peak.dense.value() + high / half_peak;
  const double sol = light * speed / static_cast<double>(options.gpu.count);
  check(sol <= 1, fmt::format("{:.6g}", speed), " tokens a second are ", fmt::format("{:.3g}", sol),
        " times what ", options.gpu.count, " x ", gpu.name,
        " do at their dense peak: nothing runs above it. Is the speed that of more devices, or the "
        "device another?");
  json["speed_of_light"] = sol;
  if (options.json) {
    std::puts(json.dump(1).c_str());
    return;
  }
  print_table(table);
  std::puts("");
  print_paragraph(fmt::format(
      "Speed of light: {:.1f} %: products of layers at the peak of {}, head and "
      "attention at that of "
      "bf16. HFU counts second runs under --recompute {} as its convention counts the model.",
      100 * sol, hardware::to_text(peak.arithmetic), options.recompute));
}

}  // namespace

void add_napkin_mfu(CLI::App& napkin) {
  CLI::App* command =
      napkin.add_subcommand("mfu", "One speed as MFU and HFU under every convention");
  const auto options = std::make_shared<Options>();
  add_model_choice(*command, options->model, false);
  add_gpu_choice(*command, options->gpu);
  command->add_option("--tokens-per-second", options->tokens_per_second, "All devices together");
  command->add_option("--mfu", options->mfu, "A published share, to convert from --from");
  command->add_option("--from", options->from, "The convention of --mfu");
  command
      ->add_option("--seq", options->seq,
                   "Tokens of a sequence; the model's context, 8192 at most, by default")
      ->check(CLI::Range(int64_t{1}, kLargestSize));
  command->add_option("--precision", options->precision, "f32, bf16, f16 or fp8")
      ->capture_default_str();
  command->add_option("--recompute", options->recompute, "none, selective or full")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  brrr napkin mfu --tokens-per-second 46096 --model llama3-8b --gpu h100 --count 8 --seq "
      "8192\n"
      "  brrr napkin mfu --mfu 0.5 --from palm --model gpt2-1558m --gpu a100-80 --count 8");
  command->callback([options] { run(*options); });
}

}  // namespace brrr::cli
