// brrr ops: every op with its kind, formula and dtypes.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/cli/commands.h"
#include "brrr/graph/op_def.h"
#include "brrr/report/table.h"

namespace brrr::cli {
namespace {

std::vector<std::string> dtypes_of(const OpDef& op) {
  std::vector<std::string> names;
  for (DType dtype : kAllDTypes) {
    if (op.dtypes.contains(dtype)) names.push_back(to_text(dtype));
  }
  return names;
}

// How the op runs on the CPU.
std::string_view runs_as(const OpDef& op) {
  return op.view ? "view" : op.tiles ? "tiles" : op.cpu ? "kernel" : "composition";
}

std::string_view gradient_of(const OpDef& op) {
  return op.grad ? "rule" : op.compose ? "composition" : "none";
}

void print_json() {
  nlohmann::json rows = nlohmann::json::array();
  for (const OpDef* op : all_ops()) {
    rows.push_back({{"name", op->name},
                    {"kind", kind_name(op->kind)},
                    {"formula", op->formula},
                    {"cpu", runs_as(*op)},
                    {"gradient", gradient_of(*op)},
                    {"dtypes", dtypes_of(*op)}});
  }
  std::puts(rows.dump(1).c_str());
}

void print_table() {
  report::Table table({"op", "kind", "meaning", "on the cpu", "gradient", "dtypes"});
  for (const OpDef* op : all_ops()) {
    const size_t count = dtypes_of(*op).size();
    table.row(op->name, kind_name(op->kind), op->formula, runs_as(*op), gradient_of(*op), count);
  }
  std::fputs(table.text().c_str(), stdout);
}

}  // namespace

void add_ops(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("ops", "List every op: kind, meaning, how it runs, how its gradient goes");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->footer("Example:\n  brrr ops --json | jq -r '.[].name'");
  command->callback([json] { *json ? print_json() : print_table(); });
}

}  // namespace brrr::cli
