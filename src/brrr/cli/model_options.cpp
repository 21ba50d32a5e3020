#include "brrr/cli/model_options.h"

#include <fstream>
#include <sstream>

#include "brrr/base/join_names.h"

namespace brrr::cli {
namespace {

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (std::string_view pass : compiler::optimising_passes()) names.emplace_back(pass);
  return names;
}

}  // namespace

CLI::Option* add_model_options(CLI::App& command, ModelOptions& options) {
  CLI::Option* model = command.add_option(
      "--model", options.model, join_text("One of ", join_names(training::step_models())));
  command.add_option("--batch", options.sizes.batch, "Sequences (or images) of a micro-batch")
      ->capture_default_str();
  command.add_option("--seq", options.sizes.seq, "Tokens in a sequence")->capture_default_str();
  command.add_option("--accumulate", options.accumulate, "Micro-batches of a step")
      ->check(CLI::Range(int64_t{1}, runs::kMostMicroBatches))
      ->capture_default_str();
  command.add_option("--optimizer", options.optimizer, optimizer_names())->capture_default_str();
  command.add_flag("--document-mask", options.document_mask,
                   "Tokens attend to their own document only, as in runs over many documents");
  command.add_option("--layers", options.sizes.layers, "Instead of the model's own");
  command.add_option("--heads", options.sizes.heads, "Instead of the model's own");
  command.add_option("--width", options.sizes.width, "Instead of the model's own");
  command.add_option("--vocab", options.sizes.vocab, "Instead of the model's own");
  command.add_option("--without", options.without, "Skip a pass")
      ->check(CLI::IsMember(pass_names()))
      ->delimiter(',');
  command.add_option("--precision", options.precision, "f32, bf16, f16 or fp8 mixed precision")
      ->capture_default_str();
  command
      .add_option("--matmul-precision", options.matmul_precision,
                  "How matmuls of f32 operands are computed: ieee, tf32 or bf16; auto: tf32 on a "
                  "GPU, else ieee")
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

training::StepSpec ModelOptions::step_of(const training::StepModel& other,
                                         const compiler::Target& target) const {
  runs::TrainConfig config = training::default_step_settings(sizes.batch, sizes.seq);
  config.train.accumulate = accumulate;
  config.optimizer.name = optimizer;
  config.data.document_mask = document_mask;
  config.train.precision = compiler::parse_precision(precision);
  if (matmul_precision != "auto")
    config.train.matmul_precision = compiler::parse_matmul_precision(matmul_precision);
  config.train.precision_of = precision_overrides;
  config.train.recompute = compiler::parse_policy(recompute);
  training::StepSpec spec = training::step_spec(config, other, target);
  if (memory_budget_mib > 0)
    spec.pipeline.remat.memory_budget =
        Bytes(static_cast<int64_t>(memory_budget_mib * 1024 * 1024));
  for (const std::string& pass : without)
    spec.pipeline = brrr::compiler::without(spec.pipeline, pass);
  return spec;
}

training::StepSpec ModelOptions::on(const compiler::Target& target) const {
  return step_of(training::find_step_model(model, sizes), target);
}

std::string ModelOptions::text() const {
  return join_text(model, ", batch ", sizes.batch, ", seq ", sizes.seq,
                   accumulate > 1 ? join_text(", ", accumulate, " micro-batches") : "");
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
