// The options of commands that take a model: which, how large a batch, which passes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "brrr/train/step_spec.h"

namespace brrr::cli {

// What is not given is as `brrr train` has it, so that a command is about the program that a run would have.
struct ModelOptions {
  std::string model;
  training::StepSizes sizes;
  int64_t accumulate = 1;
  std::string optimizer = "adamw";
  bool document_mask = false;
  std::vector<std::string> without;  // passes to skip
  std::string precision = "f32", matmul_precision = "auto", recompute = "selective";
  std::vector<std::string> precision_overrides;  // "h.*.attn=f32"
  double memory_budget_mib = 0;                  // for the arena; 0: none

  training::StepSpec on(const compiler::Target& target) const;
  training::StepSpec step_of(const training::StepModel& other,
                             const compiler::Target& target) const;  // the same of another model
  int64_t rows() const { return sizes.batch * accumulate; }          // of a step
  std::string text() const;  // "gpt2-124m, batch 64, seq 1024"
};
CLI::Option* add_model_options(CLI::App& command, ModelOptions& options);

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);

}  // namespace brrr::cli
