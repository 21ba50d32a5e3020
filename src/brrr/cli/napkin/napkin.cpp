// brrr napkin: plans of runs, checked against published ones and against this machine.
#include "brrr/cli/napkin/napkin.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "brrr/cli/commands.h"
#include "brrr/cli/model_options.h"
#include "brrr/plan/model/model_limits.h"
#include "brrr/report/terminal.h"

namespace brrr::cli {

void add_model_choice(CLI::App& command, ModelChoice& choice, bool takes_params) {
  command.add_option("--model", choice.model,
                     "A preset (`brrr models`), a TOML file, or a config.json of Hugging Face");
  if (takes_params)
    command.add_option("--params", choice.params,
                       "A bare number of parameters in place of a model");
  plan::ShapeOptions& shape = choice.shape;
  command.add_option("--family", shape.family,
                     join_text("Free shape: ", one_of(plan::free_shape_families())));
  command.add_option("--layers", shape.layers, "Layers, in place of the model's");
  command.add_option("--hidden", shape.hidden, "Width of the residual stream");
  command.add_option("--heads", shape.heads, "Query heads");
  command.add_option("--kv-heads", shape.kv_heads, "Key and value heads");
  command.add_option("--head-dim", shape.head_dim, "Elements of a head");
  command.add_option("--ffn", shape.ffn, "Hidden units of the network");
  command.add_option("--vocab", shape.vocab, "Entries of the vocabulary");
  command.add_option("--experts", shape.experts, "Experts of a mixture");
  command.add_option("--top-k", shape.top_k, "Experts that a token goes through");
  command.add_flag("--tied", shape.tied, "The head is the table of tokens");
  command.add_flag("--qkv-bias", shape.qkv_bias, "Biases in q, k and v");
}

plan::NamedModel chosen_model(const ModelChoice& choice, int64_t seq) {
  plan::NamedModel model = plan::find_model(choice.model, choice.shape);
  const bool has_table = shape_of(model.config).learned_positions > 0;
  if (has_table && choice.model.empty() && seq > 0) model.config.set("context", seq);
  plan::check_model(model.config);
  return model;
}

void set_model(plan::RunQuestion& question, const ModelChoice& choice) {
  if (choice.params) {
    check(choice.model.empty() && !choice.shape.any(), "--params and --model exclude each other");
    question.parameters = *choice.params;
    check(*choice.params > 0, "--params ", *choice.params,
          ": a model has 1 parameter or more; 70e9 parameters are 70 billion");
    check(*choice.params == std::floor(*choice.params), "--params ", *choice.params,
          " is no whole number");
    question.model_name = fmt::format("{:g} parameters", *choice.params);
    return;
  }
  plan::NamedModel found = chosen_model(choice, question.seq);
  question.model_name = std::move(found.name);
  question.model = found.config;
}

void add_gpu_choice(CLI::App& command, GpuChoice& choice, bool takes_count) {
  command.add_option("--gpu", choice.gpu, "A device of `brrr napkin gpu`")->required();
  if (takes_count)
    command.add_option("--count", choice.count, "How many of them")->capture_default_str();
  command.add_option("--devices", choice.devices, "TOML file with devices of your own");
}

std::string chosen_gpu(const GpuChoice& choice) {
  if (!choice.devices.empty())
    hardware::add_gpus_from_toml(read_file(choice.devices), choice.devices);
  check(choice.count >= 1 && choice.count <= plan::kMostDevices, choice.count,
        " devices make no sense; use 1 to ", plan::kMostDevices);
  return hardware::find_gpu(choice.gpu).name;
}

NapkinTable napkin_table(const std::string& title) {
  return report::Table({"what", "value", "how"}, title);
}

int output_columns() {
  constexpr int kWithoutTerminal = 120;
  return report::terminal_columns(stdout, kWithoutTerminal);
}
void print_table(const report::Table& table) {
  std::fputs(table.text(output_columns()).c_str(), stdout);
}
void print_paragraph(std::string_view text) {
  std::fputs(report::wrapped_text("", text, output_columns()).c_str(), stdout);
}

void print_assumptions(const std::vector<std::string>& assumptions) {
  std::puts("\nAssumptions");
  for (const std::string& line : assumptions)
    std::fputs(report::wrapped_text("  - ", line, output_columns()).c_str(), stdout);
}

std::string gb_text(double bytes) { return fmt::format("{:.2f} GB", bytes / 1e9); }
std::string flops_text(double flops) { return fmt::format("{:.4g} FLOP", flops); }
std::string count_text(double number) {
  return number < 1e15 ? with_commas(static_cast<int64_t>(number)) : fmt::format("{:.4g}", number);
}

void add_napkin(CLI::App& app) {
  CLI::App* napkin = app.add_subcommand(
      "napkin", "Plan a run before you pay for it: time, memory, money, and what limits it");
  napkin->require_subcommand(1);
  add_napkin_train(*napkin);
  add_napkin_fit(*napkin);
  add_napkin_budget(*napkin);
  add_napkin_infer(*napkin);
  add_napkin_op(*napkin);
  add_napkin_lint(*napkin);
  add_napkin_mfu(*napkin);
  add_napkin_gpu(*napkin);
  add_napkin_check(*napkin);
  add_napkin_verify(*napkin);
  napkin->footer(
      "Examples:\n"
      "  brrr napkin train --params 70e9 --tokens 15e12 --gpu h100 --count 1024 --mfu 0.5\n"
      "  brrr napkin fit --gpu h100 --count 8 --precision f32\n"
      "  brrr napkin check");
}

}  // namespace brrr::cli
