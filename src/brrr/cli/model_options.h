// The options of commands that take a model: which, how large a batch, which passes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "brrr/napkin/model_step.h"

namespace brrr::cli {

struct ModelOptions {
  std::string model;
  StepOptions step;
  std::vector<std::string> without;  // passes to skip
  std::string precision = "f32", matmul_precision = "ieee", recompute = "budget";
  std::vector<std::string> precision_overrides;  // "h.*.attn=f32"
  double memory_budget_mib = 0;                  // for the arena; 0: none

  StepOptions on(Device device) const;
};
CLI::Option* add_model_options(CLI::App& command, ModelOptions& options);

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);

}  // namespace brrr::cli
