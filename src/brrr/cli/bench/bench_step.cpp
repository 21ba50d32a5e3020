// brrr bench step: one training step op by op, compiled as it is, and with every pass; what is left of
// it beside the contractions, and the update beside the bytes that it must move.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "brrr/base/units.h"
#include "brrr/cli/bench/bench.h"
#include "brrr/cli/device_option.h"
#include "brrr/cli/model_options.h"
#include "brrr/hardware/measure.h"
#include "brrr/plan/profile.h"
#include "brrr/report/table.h"
#include "brrr/train/setup.h"

namespace brrr::cli {
namespace {

struct Options {
  ModelOptions model;
  int rounds = 7;
  DeviceOption device;
};

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

template <typename Wanted>
double kernel_seconds(const runtime::Executable& program, const runtime::KernelTimes& times,
                      const Wanted& wanted) {
  double sum = 0;
  const std::vector<compiler::Kernel>& kernels = program.kernels().kernels;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (wanted(kernels[i])) sum += times.seconds[i];
  }
  return sum;
}

struct StepSeconds {
  double eager, plain, fused;  // whole steps
  double contractions;         // of the plain program, whose kernels are single ops
  double update;               // of the fused program, without the norm of the gradients
  double copy_bandwidth;       // B/s
};

// A step with what it runs on.
struct MadeStep {
  training::TrainingParts parts;
  Batch batch;
  explicit MadeStep(const training::StepSpec& spec)
      : parts(training::make_parts(spec)), batch(training::make_batch(spec)) {}
  runtime::Executable& program() const { return parts.step->executable(batch); }
};

StepSeconds measure(const MadeStep& plain_step, const MadeStep& fused_step, int rounds) {
  runtime::Executable &plain = plain_step.program(), &fused = fused_step.program();
  const std::vector<Tensor> plain_inputs = plain_step.parts.step->inputs_of(plain_step.batch),
                            fused_inputs = fused_step.parts.step->inputs_of(fused_step.batch);
  std::vector<double> eager, plain_all, fused_all, contractions, update, bandwidth;
  const auto timed = [](std::vector<double>& all, const auto& work) {
    const Clock::time_point start = Clock::now();
    work();
    all.push_back(seconds_since(start));
  };
  runtime::KernelTimes times;
  for (int round = -1; round < rounds; ++round) {  // the first warms up
    if (round == 0) {
      for (auto* all : {&eager, &plain_all, &fused_all, &contractions, &update}) all->clear();
    }
    timed(eager, [&] { plain_step.parts.step->run_eager(plain_step.batch); });
    timed(plain_all, [&] { plain.run(plain_inputs); });
    timed(fused_all, [&] { fused.run(fused_inputs); });
    plain.run_timed(plain_inputs, times);
    contractions.push_back(kernel_seconds(plain, times, [](const compiler::Kernel& kernel) {
      return cost::class_of(kernel) == cost::KernelClass::contraction;
    }));
    fused.run_timed(fused_inputs, times);
    update.push_back(kernel_seconds(fused, times, [](const compiler::Kernel& kernel) {
      return kernel.phase == graph::Phase::update &&
             cost::class_of(kernel) == cost::KernelClass::elementwise;
    }));
    bandwidth.push_back(hardware::measure_memory().copy.value());
  }
  return {median(eager),        median(plain_all), median(fused_all),
          median(contractions), median(update),    median(bandwidth)};
}

void run_step(const Options& options) {
  const training::StepSpec spec = options.model.on(options.device.target());
  training::StepSpec bare = spec;
  for (std::string_view pass : compiler::optimising_passes())
    bare.pipeline = compiler::without(bare.pipeline, pass);
  const MadeStep plain(bare), fused(spec);
  const StepSeconds s = measure(plain, fused, options.rounds);

  report::Table table({"", "kernels", "ms", "contractions", "outside", "of eager's", "tokens/s"},
                      fmt::format("{}, {} threads", options.model.text(), thread_pool().threads()));
  const auto row = [&](const char* name, const runtime::Executable& program, double seconds) {
    const double outside = seconds - s.contractions;
    table.row(
        name, program.kernels().kernels.size(), fmt::format("{:.1f}", 1e3 * seconds),
        fmt::format("{:.1f}", 1e3 * s.contractions), fmt::format("{:.1f}", 1e3 * outside),
        fmt::format("{:.2f}x", outside / (s.eager - s.contractions)),
        fmt::format("{:.0f}",
                    static_cast<double>(options.model.rows() * options.model.sizes.seq) / seconds));
  };
  row("eager, op by op", plain.program(), s.eager);
  row("compiled, no passes", plain.program(), s.plain);
  row("compiled", fused.program(), s.fused);
  std::fputs(table.text().c_str(), stdout);
  const training::TrainingParts& parts = fused.parts;
  // Weights and states are read and written, gradients read.
  const double bytes = 3 * static_cast<double>(parts.trained().counts().bytes.value()) +
                       2 * static_cast<double>(parts.optimizer->state_bytes().value());
  const double floor = bytes / s.copy_bandwidth;
  std::printf(
      "\ncontractions are timed once, as single ops; what a fused one does besides counts as "
      "outside\n"
      "update: %.1f ms, %.2fx the floor of %.0f B a parameter at %.1f GB/s (%.1f ms)\n",
      1e3 * s.update, s.update / floor,
      bytes / static_cast<double>(parts.trained().parameter_count()), s.copy_bandwidth / 1e9,
      1e3 * floor);
}

}  // namespace

void add_bench_step(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("step", "A training step: eager, compiled, and with every pass");
  const auto options = std::make_shared<Options>();
  options->model.model = "gpt2-124m";
  options->model.sizes.vocab = 50304;
  add_model_options(*command, options->model)->capture_default_str();
  command->add_option("--rounds", options->rounds, "Measurements; medians count")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_device_option(*command, options->device);
  command->callback([options] { run_step(*options); });
}

}  // namespace brrr::cli
