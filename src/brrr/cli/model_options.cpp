#include "brrr/cli/model_options.h"

#include <fstream>
#include <sstream>

namespace brrr::cli {

CLI::Option* add_model_options(CLI::App& command, ModelOptions& options) {
  std::string known;
  for (const std::string& name : step_models()) known += join_text(known.empty() ? "" : ", ", name);
  CLI::Option* model = command.add_option("--model", options.model, join_text("One of ", known));
  command.add_option("--batch", options.step.batch, "Sequences (or rows) in a step")
      ->capture_default_str();
  command.add_option("--seq", options.step.seq, "Tokens in a sequence")->capture_default_str();
  command.add_option("--layers", options.step.layers, "Instead of the model's own");
  command.add_option("--heads", options.step.heads, "Instead of the model's own");
  command.add_option("--width", options.step.width, "Instead of the model's own");
  command.add_option("--vocab", options.step.vocab, "Instead of the model's own");
  command.add_option("--without", options.without, "Skip a pass")
      ->check(CLI::IsMember({"simplify", "fuse", "plan_memory"}))
      ->delimiter(',');
  return model;
}

StepOptions ModelOptions::on(Device device) const {
  StepOptions options = step;
  options.device = device;
  for (const std::string& pass : without) {
    if (pass == "simplify") options.pipeline.simplify = false;
    if (pass == "fuse") options.pipeline.fuse = false;
    if (pass == "plan_memory") options.pipeline.plan_memory = false;
  }
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
