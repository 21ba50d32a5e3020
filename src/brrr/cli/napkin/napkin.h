// The commands of `brrr napkin`, one file each, and what they share.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "brrr/plan/cluster/run_question.h"
#include "brrr/plan/model/model_source.h"
#include "brrr/report/table.h"

namespace brrr::cli {

void add_napkin_train(CLI::App& napkin);
void add_napkin_fit(CLI::App& napkin);
void add_napkin_budget(CLI::App& napkin);
void add_napkin_infer(CLI::App& napkin);
void add_napkin_op(CLI::App& napkin);
void add_napkin_lint(CLI::App& napkin);
void add_napkin_mfu(CLI::App& napkin);
void add_napkin_gpu(CLI::App& napkin);
void add_napkin_check(CLI::App& napkin);
void add_napkin_verify(CLI::App& napkin);

// --model, --params and the free shapes.
struct ModelChoice {
  std::string model;
  std::optional<double> params;
  plan::ShapeOptions shape;
};
void add_model_choice(CLI::App& command, ModelChoice& choice, bool takes_params);
// The model; a free shape with a table of positions has one for `seq` tokens, where that is given.
plan::NamedModel chosen_model(const ModelChoice& choice, int64_t seq);
// Fills model, model_name and parameters of the question.
void set_model(plan::RunQuestion& question, const ModelChoice& choice);

// --gpu, --count and --devices FILE.
struct GpuChoice {
  std::string gpu;
  int64_t count = 1;
  std::string devices;
};
void add_gpu_choice(CLI::App& command, GpuChoice& choice, bool takes_count = true);
// Reads the file of devices, where there is one, and names the device as the table does.
std::string chosen_gpu(const GpuChoice& choice);

// As wide as the terminal; 120 columns where there is none.
int output_columns();
void print_table(const report::Table& table);
void print_paragraph(std::string_view text);

// A row of the napkin: what, how much, and how it came about.
using NapkinTable = report::Table;
NapkinTable napkin_table(const std::string& title);
void print_assumptions(const std::vector<std::string>& assumptions);

// "GB" throughout: 80e9 B is 80 GB, as data sheets have it.
std::string gb_text(double bytes);
std::string flops_text(double flops);  // "6.3e24 FLOP"
std::string count_text(
    double number);  // "70e9" -> "70.00 B", exact below 1e15 where asked by with_commas

}  // namespace brrr::cli
