// brrr sweep: holds ops against their definitions on this machine.
#include "brrr/sweep/sweep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "brrr/cli/commands.h"
#include "brrr/cli/exit_codes.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/device/gpu_info.h"
#include "brrr/report/table.h"
#include "brrr/sweep/cuda.h"

namespace brrr::cli {
namespace {

std::vector<const OpDef*> find_ops(const std::vector<std::string>& names) {
  if (names.empty()) return all_ops();
  std::vector<const OpDef*> ops;
  for (const std::string& name : names) {
    const OpDef* op = find_op(name);
    check(op != nullptr, "there is no op named \"", name, "\"; `brrr ops` lists them");
    ops.push_back(op);
  }
  return ops;
}

struct Outcome {
  int held = 0;
  std::vector<std::string> failures;
  std::chrono::duration<double> elapsed{};
};

// Runs every check on one op.
Outcome sweep_one(const OpDef& op, std::span<const sweep::Check> checks) {
  Outcome outcome;
  const auto start = std::chrono::steady_clock::now();
  for (const sweep::Check& check : checks) {
    try {
      check.run(op);
      ++outcome.held;
    } catch (const std::exception& error) {
      outcome.failures.push_back(join_text(op.name, ", ", check.name, ": ", error.what()));
    }
  }
  outcome.elapsed = std::chrono::steady_clock::now() - start;
  return outcome;
}

// What is checked on a device. Inputs on a GPU are fresh each time; the seed that is said repeats them.
std::span<const sweep::Check> checks_on(Device device, uint64_t seed) {
  if (device.kind == DeviceKind::cpu) return sweep::checks();
  check(device == Device::cuda(0), "sweep: ", device, " is not swept; use cpu or cuda");
  check(cuda::gpu_count() > 0, "sweep: there is no GPU: ", list_gpus().reason);
  if (seed == 0) seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  sweep::set_cuda_seed(seed);
  return sweep::cuda_checks();
}

struct SweepOptions {
  std::vector<std::string> names;
  std::string device = "cpu";
  uint64_t seed = 0;
  bool lists_ops = false;
};

void run_sweep(const SweepOptions& options) {
  const std::vector<const OpDef*> ops = find_ops(options.names);
  const std::span<const sweep::Check> checks =
      checks_on(parse_device(options.device), options.seed);
  const bool terminal = isatty(fileno(stderr)) != 0 && !options.lists_ops;
  std::vector<std::string> failures;
  size_t held = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (terminal)
      std::fprintf(stderr, "\r[%zu/%zu] %-20.*s", i + 1, ops.size(),
                   static_cast<int>(ops[i]->name.size()), ops[i]->name.data());
    const Outcome outcome = sweep_one(*ops[i], checks);
    if (options.lists_ops) {
      fmt::print("{:<24} {:>2} of {} checks held {:8.2f} s\n", ops[i]->name, outcome.held,
                 checks.size(), outcome.elapsed.count());
      std::fflush(stdout);  // a checker may be stopped before the end
    }
    held += static_cast<size_t>(outcome.held);
    failures.insert(failures.end(), outcome.failures.begin(), outcome.failures.end());
  }
  if (terminal) std::fprintf(stderr, "\r%-40s\r", "");
  for (const std::string& failure : failures) std::printf("FAILED %s\n", failure.c_str());
  std::printf("%zu ops, %zu checks held, %zu failed\n", ops.size(), held, failures.size());
  if (!failures.empty()) throw CheckFailed(join_text(failures.size(), " checks failed"));
}

}  // namespace

void add_sweep(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "sweep", "Hold ops against their definitions: values, gradients, layouts, threads, guards");
  const auto options = std::make_shared<SweepOptions>();
  command->add_option("ops", options->names, "Names of ops; all when none are given");
  command->add_option("--device", options->device, "cpu, or cuda: the GPU beside the cpu")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of the inputs on a GPU; 0 takes fresh ones");
  command->add_flag("-v,--verbose", options->lists_ops, "A line for every op, with its time");
  command->footer("Examples:\n  brrr sweep matmul softmax\n  brrr sweep --device cuda --verbose");
  command->callback([options] { run_sweep(*options); });
}

}  // namespace brrr::cli
