// brrr napkin train: what a training run takes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "brrr/cli/kernel_view.h"
#include "brrr/cli/napkin/napkin.h"
#include "brrr/cli/napkin/run_options.h"
#include "brrr/plan/cluster/run_kernels.h"

namespace brrr::cli {
namespace {

struct Options {
  RunOptions run;
  std::string rates;
  bool json = false, kernels = false;
};

void add_work(report::Table& table, const plan::RunAnswer& a) {
  const plan::RunQuestion& q = a.question;
  table.row("parameters", count_text(a.params), q.model ? "counted in the model" : "as given");
  if (a.active_params != a.params)
    table.row("of a token", count_text(a.active_params), "experts that it goes through");
  table.row("FLOPs a token", fmt::format("{:.5g} FLOP", a.flops_per_token),
            plan::info_of(q.model ? q.convention : plan::Convention::six_n).formula);
  if (q.model) {
    table.row("attention's share", fmt::format("{:.1f} %", 100 * a.attention_share),
              fmt::format("of the exact count, at {} tokens", q.seq));
    table.row("6 N D instead", fmt::format("{:+.1f} %", 100 * a.six_nd_error),
              "against the exact count");
  }
  table.row("all FLOPs", flops_text(a.total_flops),
            fmt::format("{:.4g} x {:.4g} tokens", a.flops_per_token, q.tokens));
}

void add_time(report::Table& table, const plan::RunAnswer& a) {
  const plan::RunQuestion& q = a.question;
  table.rule();
  table.row(
      "step", to_text(Seconds(a.step_seconds)),
      fmt::format("{} x {} tokens; {}", q.global_batch, q.seq,
                  a.is_predicted ? "predicted kernel by kernel" : "FLOPs / (count x peak x mfu)"));
  if (a.is_predicted)
    table.row("of it the update", to_text(Seconds(a.update_seconds)),
              fmt::format("{}, its share of the parameters", q.optimizer));
  table.row("speed", fmt::format("{:.4g} tokens/s", a.tokens_per_second),
            "tokens of a step / step");
  table.row("MFU", fmt::format("{:.1f} %", 100 * a.mfu), "FLOPs a second / (count x dense peak)");
  table.row("HFU", fmt::format("{:.1f} %", 100 * a.hfu), "with what runs a second time");
  table.row("days", fmt::format("{:.2f} d", a.days),
            fmt::format("{:.4g} / ({} x {} x {:.3g} x {} goodput x 86400)", a.total_flops, q.count,
                        to_text(FlopsPerSecond(a.peak_flops_per_second)), a.mfu, q.goodput));
  table.row("GPU-hours", fmt::format("{} h", count_text(std::round(a.gpu_hours))),
            "days x 24 x count");
  if (a.cost_usd > 0)
    table.row("cost", join_text("$", count_text(std::round(a.cost_usd))),
              fmt::format("at ${} an hour", q.price_per_hour));
  if (a.energy_kwh > 0)
    table.row("energy", fmt::format("{} kWh", count_text(std::round(a.energy_kwh))),
              "GPU-h x W x PUE");
}

void print_memory(const plan::RunAnswer& a) {
  const plan::RunMemory& m = a.memory;
  report::Table table(
      {"memory of one device", "GB"},
      a.question.layout.pp > 1 ? fmt::format("Pipeline stage {}, the fullest", m.stage) : "");
  const auto row = [&](const char* what, double bytes) {
    table.row(what, fmt::format("{:.2f}", bytes / 1e9));
  };
  row("parameters", m.params), row("gradients", m.grads), row("master weights", m.master);
  row("optimizer", m.optimizer), row("activations", m.activations), row("logits", m.logits);
  row("buffers", m.buffers), row("overhead", m.overhead);
  table.rule();
  row("total", m.total());
  row("the device has", static_cast<double>(hardware::find_gpu(a.question.gpu).memory.value()));
  std::puts("");
  print_table(table);
  print_paragraph(a.fits ? "It fits."
                         : "It does NOT fit: cut it over devices (--tp, --pp, --zero), keep less "
                           "(--recompute), or ask `brrr napkin fit --find plan`.");
}

void print_traffic(const plan::RunAnswer& a) {
  const plan::RunTraffic& t = a.traffic;
  if (a.question.count == 1 || !a.question.model) return;
  report::Table table({"sent by one device in a step", "GB", "seconds"});
  const auto row = [&](const char* what, double bytes, double seconds) {
    if (bytes > 0)
      table.row(what, fmt::format("{:.3f}", bytes / 1e9), fmt::format("{:.4f}", seconds));
  };
  row("data parallel", t.data, t.data_seconds), row("tensor parallel", t.tensor, t.tensor_seconds);
  row("pipeline", t.pipeline, t.pipeline_seconds),
      row("context parallel", t.context, t.context_seconds);
  row("experts", t.expert, t.expert_seconds);
  std::printf("\n%s%.4f s of %.4f s stay visible beside the arithmetic", table.text().c_str(),
              t.exposed_seconds, t.seconds());
  if (t.bubble > 0) std::printf("; the pipeline bubble is %.1f %%", 100 * t.bubble);
  std::puts(".");
}

// Hoffmann et al. 2022: what a compute-optimal run takes.
constexpr double kTokensPerParameter = 20;

double parameters_of(const plan::RunQuestion& q) {
  return q.model ? static_cast<double>(parameter_count(*q.model)) : q.parameters;
}

void run(const CLI::App& command, const Options& options) {
  check_effects(command, options.run);
  plan::RunQuestion question = options.run.question();
  const bool has_tokens = command.count("--tokens") > 0;
  if (!has_tokens) question.tokens = kTokensPerParameter * parameters_of(question);
  // The step whose kernels are listed has one micro-batch unless the batch says more, as that of `brrr train`.
  const plan::ParallelLayout& layout = question.layout;
  if (options.kernels && question.global_batch == 0)
    question.global_batch =
        question.micro_batch *
        std::max<int64_t>(1, question.count / (layout.tp * layout.pp * layout.cp));
  if (!options.rates.empty()) question.rates = hardware::load_rates(options.rates);
  plan::RunAnswer a = plan::answer(question);
  for (std::string& note : notes_on_effects(command, a)) a.assumptions.push_back(std::move(note));
  if (!has_tokens)
    a.assumptions.push_back(
        fmt::format("{:.4g} tokens: 20 per parameter (--tokens)", a.question.tokens));
  const std::vector<cost::KernelLine> kernels =
      options.kernels ? plan::run_kernels(a) : std::vector<cost::KernelLine>();
  if (options.json) {
    nlohmann::json json = nlohmann::json::parse(plan::to_json(a));
    if (options.kernels) json["kernels"] = kernels_json(kernels);
    std::puts(json.dump(1).c_str());
    return;
  }
  report::Table table = napkin_table(
      fmt::format("{} on {} x {}", a.question.model_name, a.question.count, a.question.gpu));
  add_work(table, a);
  add_time(table, a);
  print_table(table);
  print_memory(a);
  print_traffic(a);
  std::puts("");
  print_paragraph(join_text("What binds: ", a.binding));
  print_assumptions(a.assumptions);
  if (options.kernels) print_kernels(kernels);
}

}  // namespace

void add_napkin_train(CLI::App& napkin) {
  CLI::App* command =
      napkin.add_subcommand("train", "Time, memory, money and limits of a training run");
  const auto options = std::make_shared<Options>();
  add_run_options(*command, options->run);
  command->add_option("--tokens", options->run.tokens,
                      "Tokens to train on; 20 per parameter where left out");
  command->add_option("--mfu", options->run.mfu,
                      "Share of the peak, 0 to 1; predicted where left out");
  command->add_option(
      "--rates", options->rates,
      "File of `brrr calibrate` made on the target, in place of the table's shares");
  command->add_flag("--kernels", options->kernels,
                    "List the kernels of one device's step, as `brrr train` would run them there");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Where 6 N D fails: convolutions use a weight at every place of an image, recurrent models "
      "at every\n"
      "step, tied tables count once and multiply once as a head; the exact count is that of the "
      "graph.\n"
      "Examples:\n"
      "  brrr napkin train --params 70e9 --tokens 15e12 --gpu h100 --count 1024 --mfu 0.5\n"
      "  brrr napkin train --model llama3-405b --tokens 15.6e12 --gpu h100 --count 16128 --tp 8 "
      "--pp 18\n"
      "      --zero 1 --recompute selective --seq 8192 --global-batch 2016 --price 2 --goodput "
      "0.9");
  command->callback([options, command] { run(*command, *options); });
}

}  // namespace brrr::cli
