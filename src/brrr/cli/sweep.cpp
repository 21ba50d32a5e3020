// brrr sweep: holds ops against their definitions on this machine.
#include "brrr/sweep/sweep.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "brrr/cli/commands.h"
#include "brrr/cli/exit_codes.h"
#include "brrr/report/table.h"

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
};

// Runs every check on one op; the row shows one mark a check.
Outcome sweep_one(const OpDef& op) {
  Outcome outcome;
  for (const sweep::Check& check : sweep::checks()) {
    try {
      check.run(op);
      ++outcome.held;
    } catch (const std::exception& error) {
      outcome.failures.push_back(join_text(op.name, ", ", check.name, ": ", error.what()));
    }
  }
  return outcome;
}

void run_sweep(const std::vector<std::string>& names) {
  const std::vector<const OpDef*> ops = find_ops(names);
  const bool terminal = isatty(fileno(stderr)) != 0;
  std::vector<std::string> failures;
  size_t held = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (terminal)
      std::fprintf(stderr, "\r[%zu/%zu] %-20.*s", i + 1, ops.size(),
                   static_cast<int>(ops[i]->name.size()), ops[i]->name.data());
    const Outcome outcome = sweep_one(*ops[i]);
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
  const auto names = std::make_shared<std::vector<std::string>>();
  command->add_option("ops", *names, "Names of ops; all when none are given");
  command->footer("Example:\n  brrr sweep matmul softmax");
  command->callback([names] { run_sweep(*names); });
}

}  // namespace brrr::cli
