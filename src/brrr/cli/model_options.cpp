#include "brrr/cli/model_options.h"

#include <fstream>
#include <sstream>

#include "brrr/base/join_names.h"

namespace brrr::cli {
namespace {

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (std::string_view pass : optimising_passes()) names.emplace_back(pass);
  return names;
}

}  // namespace

CLI::Option* add_model_options(CLI::App& command, ModelOptions& options) {
  CLI::Option* model =
      command.add_option("--model", options.model, join_text("One of ", join_names(step_models())));
  command.add_option("--batch", options.step.batch, "Sequences (or rows) in a step")
      ->capture_default_str();
  command.add_option("--seq", options.step.seq, "Tokens in a sequence")->capture_default_str();
  command.add_option("--layers", options.step.layers, "Instead of the model's own");
  command.add_option("--heads", options.step.heads, "Instead of the model's own");
  command.add_option("--width", options.step.width, "Instead of the model's own");
  command.add_option("--vocab", options.step.vocab, "Instead of the model's own");
  command.add_option("--without", options.without, "Skip a pass")
      ->check(CLI::IsMember(pass_names()))
      ->delimiter(',');
  command.add_option("--precision", options.precision, "f32, bf16, f16 or fp8 mixed precision")
      ->capture_default_str();
  command
      .add_option("--matmul-precision", options.matmul_precision,
                  "How products of f32 operands are computed: ieee, tf32 or bf16")
      ->capture_default_str();
  command.add_option("--precision-of", options.precision_overrides,
                     "Another precision for modules: 'h.*.attn=f32'");
  command
      .add_option("--recompute", options.recompute,
                  "What the backward part computes again: none, selective, full, or budget (what "
                  "is faster, or fits --memory-budget)")
      ->capture_default_str();
  command
      .add_option("--memory-budget", options.memory_budget_mib,
                  "MiB for everything but states, inputs and outputs")
      ->check(CLI::PositiveNumber);
  return model;
}

StepOptions ModelOptions::on(Device device) const {
  StepOptions options = step;
  options.device = device;
  for (const std::string& pass : without) options.pipeline = brrr::without(options.pipeline, pass);
  options.pipeline.precision.policy = parse_precision(precision);
  options.pipeline.precision.matmul = parse_matmul_precision(matmul_precision);
  for (const std::string& text : precision_overrides)
    options.pipeline.precision.overrides.push_back(parse_precision_override(text));
  options.pipeline.remat.policy = parse_policy(recompute);
  if (memory_budget_mib > 0)
    options.pipeline.remat.memory_budget =
        Bytes(static_cast<int64_t>(memory_budget_mib * 1024 * 1024));
  return options;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  check(file.good(), "cannot read ", path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  check(file.good(), "cannot write ", path, "; is the folder there and writable?");
}

}  // namespace brrr::cli
