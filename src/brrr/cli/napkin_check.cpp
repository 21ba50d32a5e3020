// brrr napkin check: published runs against what this library says of them.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/cli/exit_codes.h"
#include "brrr/cli/napkin.h"
#include "brrr/napkin/published.h"

namespace brrr::cli {
namespace {

void print_json(const std::vector<PublishedCase>& cases) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const PublishedCase& c : cases)
    rows.push_back({{"id", c.id},
                    {"what", c.what},
                    {"unit", c.unit},
                    {"published", c.published},
                    {"predicted", c.predicted},
                    {"error", c.error()},
                    {"class", to_text(c.kind)},
                    {"band", c.band},
                    {"source", c.source},
                    {"reason", c.reason},
                    {"holds", c.holds()}});
  std::puts(rows.dump(1).c_str());
}

void print_table(const std::vector<PublishedCase>& cases) {
  Table table({"id", "case", "published", "ours", "unit", "error", "band", "class", "source"});
  for (const PublishedCase& c : cases) {
    const bool is_bound = c.kind == CaseClass::bound;
    table.row(join_text(c.id, c.holds() ? "" : " !"), c.what, fmt::format("{:.5g}", c.published),
              fmt::format("{:.5g}", c.predicted), c.unit, fmt::format("{:+.1f} %", 100 * c.error()),
              is_bound ? std::string("at least") : fmt::format("{:g} %", 100 * c.band),
              to_text(c.kind), c.source);
  }
  std::fputs(table.text().c_str(), stdout);
  for (const PublishedCase& c : cases) {
    if (!c.reason.empty())
      std::printf("%s, %s: %s\n", c.id.c_str(), c.what.c_str(), c.reason.c_str());
  }
}

void run(bool json) {
  const std::vector<PublishedCase> cases = published_cases();
  json ? print_json(cases) : print_table(cases);
  int outside = 0;
  for (const PublishedCase& c : cases) outside += c.holds() ? 0 : 1;
  if (outside > 0)
    throw CheckFailed(
        fmt::format("{} of {} published cases are outside their band", outside, cases.size()));
  if (!json) std::printf("\nAll %zu hold.\n", cases.size());
}

}  // namespace

void add_napkin_check(CLI::App& napkin) {
  CLI::App* command =
      napkin.add_subcommand("check", "Every published run against what brrr says of it");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->footer(
      "Bands: exact 1 %, formulas and memory 3 %, predictions 15 %, where no reason is named.");
  command->callback([json] { run(*json); });
}

}  // namespace brrr::cli
