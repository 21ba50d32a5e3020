// brrr profile: runs a compiled training step and prints what it cost beside what was predicted.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "brrr/cli/commands.h"
#include "brrr/cli/device_option.h"
#include "brrr/cli/model_options.h"
#include "brrr/cli/rates_option.h"
#include "brrr/cost/calibrate.h"
#include "brrr/cost/calibrate_cuda.h"
#include "brrr/device/gpu_info.h"
#include "brrr/device/gpu_watch.h"
#include "brrr/report/profile_report.h"
#include "brrr/runtime/stages.h"
#include "brrr/train/setup.h"

namespace brrr::cli {
namespace {

struct Options {
  ModelOptions model;
  RatesOption rates;
  DeviceOption device;
  int steps = 5, rows = 20;
  bool calibrate = false, json = false, no_batch_test = false;
  std::string what_if, trace;
};

report::BatchTest test_batch(const Options& options, runtime::Executable& once,
                             std::span<const Tensor> inputs, const plan::Profile& profile) {
  ModelOptions doubled = options.model;
  doubled.sizes.batch *= 2;
  const training::StepSpec spec = doubled.on(options.device.target());
  const training::TrainingParts twice = training::make_parts(spec);
  const Batch batch = training::make_batch(spec);
  runtime::Executable& program = twice.step->executable(batch);
  const std::vector<Tensor> twice_inputs = twice.step->inputs_of(batch);
  // In turn, so that both meet the same machine.
  std::vector<double> first, second;
  for (int i = 0; i < std::max(3, options.steps); ++i) {
    first.push_back(plan::measure_steps(once, inputs, {.steps = 1}).step_seconds);
    second.push_back(plan::measure_steps(program, twice_inputs, {.steps = 1}).step_seconds);
  }
  const auto median = [](std::vector<double>& all) {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  };
  report::BatchTest test{
      .batch = options.model.sizes.batch, .once = median(first), .twice = median(second)};
  for (const plan::KernelProfile& kernel : profile.kernels) {
    if (kernel.phase == graph::Phase::update) test.update_once += kernel.seconds;
  }
  return test;
}

// The same step in another precision: another program, planned without memory.
runtime::PlannedProgram plan_in(compiler::Precision precision, const ModelOptions& model) {
  training::StepSpec spec = training::on_paper(model.on(compiler::target_of(default_device())));
  spec.pipeline.precision.policy = precision;
  return training::plan_step(spec);
}

double price(const cost::WhatIf& what_if, const runtime::Executable& program,
             const ModelOptions& model, const hardware::Rates& rates) {
  if (!what_if.precision)
    return cost::predict(program.kernels(), program.plan(), rates, what_if).seconds();
  const runtime::PlannedProgram other = plan_in(*what_if.precision, model);
  return cost::predict(other.kernels, other.plan, rates, what_if).seconds();
}

void run_profile(const Options& options) {
  const DeviceScope scope(options.device.device());
  const cost::WhatIf what_if = cost::parse_what_if(options.what_if);
  const training::StepSpec spec = options.model.on(options.device.target());
  const training::TrainingParts parts = training::make_parts(spec);
  const Batch batch = training::make_batch(spec);
  runtime::Executable& program = parts.step->executable(batch);
  std::unique_ptr<cost::Calibrator> calibrator;
  plan::MeasureOptions measure{.steps = options.steps};
  const bool is_gpu = default_device().is_accelerator();
  if (options.calibrate && !is_gpu) {
    calibrator = std::make_unique<cost::Calibrator>();
    measure.between = [&] { calibrator->round(); };
  }
  std::unique_ptr<GpuWatch> watch;
  if (is_gpu)
    watch = std::make_unique<GpuWatch>(
        list_gpus().gpus[static_cast<size_t>(default_device().index)].bus_id);
  const std::vector<Tensor> inputs = parts.step->inputs_of(batch);
  const plan::StepTimes times = plan::measure_steps(program, inputs, measure);
  const std::optional<GpuLoad> load = watch ? std::optional(watch->finish()) : std::nullopt;
  const hardware::Rates rates =
      calibrator ? calibrator->rates()
      : options.calibrate && is_gpu
          ? cost::calibrate_cuda(default_device(),
                                 {.programs = {&program.kernels()}, .programs_name = "this step"})
          : find_rates(options.rates, spec.target);
  const runtime::PlannedProgram in_bf16 = plan_in(compiler::Precision::bf16_mixed, options.model);
  report::ProfileReport report{
      .title = fmt::format("{}: {} parameters, {} kernels", options.model.text(),
                           with_commas(parts.trained().parameter_count()),
                           program.kernels().kernels.size()),
      .profile = plan::make_profile(program.kernels(), program.plan(), times, rates),
      .advice = plan::advise(program.kernels(), program.plan(), rates, {.in_bf16 = &in_bf16}),
      .gpu_load = load,
      .batch_test = {},
      .what_if = {}};
  if (!options.no_batch_test)
    report.batch_test = test_batch(options, program, inputs, report.profile);
  if (!options.what_if.empty())
    report.what_if = {options.what_if, price(what_if, program, options.model, rates)};
  if (!options.trace.empty()) write_file(options.trace, report::profile_trace(report.profile));
  const std::string text = options.json ? report::profile_json(report) + "\n"
                                        : report::profile_text(report, {.rows = options.rows});
  std::fputs(text.c_str(), stdout);
}

}  // namespace

void add_profile(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "profile",
      "Run a compiled training step: what each kernel costs, what bounds it, what would help");
  const auto options = std::make_shared<Options>();
  add_model_options(*command, options->model)->required();
  command->add_option("--steps", options->steps, "Steps to measure; medians count")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--calibrate", options->calibrate,
                    "Measure the rates in the same run, a round between steps");
  command->add_option("--what-if", options->what_if,
                      "Price the same graph again: flops=2x,bandwidth=2x,overhead=0,dtype=bf16");
  command->add_option("--trace", options->trace, "Write a timeline for ui.perfetto.dev");
  command->add_option("--rows", options->rows, "Kinds of kernels to list")->capture_default_str();
  command->add_flag("--no-batch-test", options->no_batch_test,
                    "Leave out the test at twice the batch");
  command->add_flag("--json", options->json, "Print JSON");
  add_rates_option(*command, options->rates);
  add_device_option(*command, options->device);
  command->footer(
      "Examples:\n"
      "  brrr profile --model gpt2-tiny\n"
      "  brrr profile --model char-gpt --batch 16 --seq 128 --calibrate\n"
      "  brrr profile --model mlp --batch 256 --what-if flops=2x --trace mlp.json");
  command->callback([options] { run_profile(*options); });
}

}  // namespace brrr::cli
