// brrr models: the models that have a name, with their exact sizes.
#include "brrr/nn/models.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/base/units.h"
#include "brrr/cli/commands.h"
#include "brrr/report/table.h"

namespace brrr::cli {
namespace {

using Json = nlohmann::ordered_json;

void print_json() {
  Json rows = Json::array();
  for (std::string_view name : model_presets()) {
    const ModelConfig config = model_preset(name);
    rows.push_back({{"name", name},
                    {"family", family_of(config)},
                    {"parameters", parameter_count(config)},
                    {"active_parameters", active_parameter_count(config)},
                    {"config", Json::parse(to_json(config))}});
  }
  std::puts(rows.dump(1).c_str());
}

void print_table() {
  report::Table table(
      {"model", "family", "parameters", "layers", "width", "heads", "context", "vocabulary"});
  for (std::string_view name : model_presets()) {
    const ModelConfig config = model_preset(name);
    const Json fields = Json::parse(to_json(config));
    const auto field = [&](const char* key) {
      return fields.contains(key) ? std::to_string(fields[key].get<int64_t>()) : std::string();
    };
    table.row(name, family_of(config), with_commas(parameter_count(config)), field("layers"),
              field("width"), field("heads"), field("context"), field("vocab"));
  }
  std::fputs(table.text().c_str(), stdout);
  std::puts("\nCounts are exact: every weight, bias and norm, tables used twice counted once.");
}

}  // namespace

void add_models(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("models", "List the models that have a name, with their exact sizes");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON, with every setting");
  command->footer(
      "Examples:\n"
      "  brrr models\n"
      "  brrr models --json | jq '.[] | select(.parameters < 1e9) | .name'");
  command->callback([json] { *json ? print_json() : print_table(); });
}

}  // namespace brrr::cli
