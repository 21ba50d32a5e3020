// brrr dtypes: element types with size and limits.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/cli/commands.h"
#include "brrr/report/table.h"
#include "brrr/tensor/dtype.h"

namespace brrr::cli {
namespace {

void print_json() {
  nlohmann::json rows = nlohmann::json::array();
  for (DType dtype : kAllDTypes) {
    nlohmann::json row{{"name", to_text(dtype)}, {"bits", bit_size(dtype)}};
    if (is_float(dtype)) {
      const FloatLimits limits = finfo(dtype);
      row.update({{"max", limits.max}, {"tiny", limits.tiny}, {"eps", limits.eps}});
    } else if (is_integer(dtype)) {
      row.update({{"min", iinfo(dtype).min}, {"max", iinfo(dtype).max}});
    }
    rows.push_back(row);
  }
  std::puts(rows.dump(1).c_str());
}

void print_table() {
  report::Table table({"dtype", "bits", "smallest", "largest", "spacing at 1"});
  for (DType dtype : kAllDTypes) {
    if (is_float(dtype)) {
      const FloatLimits limits = finfo(dtype);
      table.row(to_text(dtype), bit_size(dtype), fmt::format("{:.5g}", limits.tiny),
                fmt::format("{:.5g}", limits.max), fmt::format("{:.5g}", limits.eps));
    } else if (is_integer(dtype)) {
      table.row(to_text(dtype), bit_size(dtype), iinfo(dtype).min, iinfo(dtype).max, "");
    } else {
      table.row(to_text(dtype), bit_size(dtype), "false", "true", "");
    }
  }
  std::fputs(table.text().c_str(), stdout);
  std::puts("\nsmallest: the smallest normal number of a float, the minimum of an integer");
}

}  // namespace

void add_dtypes(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("dtypes", "List element types with their sizes and limits");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->footer("Example:\n  brrr dtypes --json | jq '.[] | select(.name == \"bf16\")'");
  command->callback([json] { *json ? print_json() : print_table(); });
}

}  // namespace brrr::cli
