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

// "at most" and "at least" with the share of the limit that was reached; else the band.
std::string band_text(const PublishedCase& c) {
  if (c.kind != CaseClass::bound) return fmt::format("{:g} %", 100 * c.band);
  return fmt::format("{}, {:.0f} % of it", c.side == Side::most ? "at most" : "at least",
                     100 * c.reached());
}

const char* verdict_of(const PublishedCase& c) {
  if (!c.holds()) return "outside";
  if (c.kind == CaseClass::bound) return "bound";
  return c.band > usual_band(c.kind) ? "wider band" : "inside";
}

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
                    {"verdict", verdict_of(c)},
                    {"holds", c.holds()}});
  std::puts(rows.dump(1).c_str());
}

void print_table(const std::vector<PublishedCase>& cases) {
  Table table(
      {"id", "case", "published", "ours", "unit", "error", "band", "class", "verdict", "source"});
  for (const PublishedCase& c : cases) {
    table.row(join_text(c.id, c.holds() ? "" : " !"), c.what, fmt::format("{:.5g}", c.published),
              fmt::format("{:.5g}", c.predicted), c.unit, fmt::format("{:+.1f} %", 100 * c.error()),
              band_text(c), to_text(c.kind), verdict_of(c), c.source);
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
  const CaseCounts n = count(cases);
  if (n.outside > 0)
    throw CheckFailed(fmt::format("{} of {} published numbers are outside their band or bound",
                                  n.outside, cases.size()));
  if (json) return;
  std::printf(
      "\n%zu numbers hold: %d exact (1 %%), %d formulas and memory (3 %%), %d predictions (15 %%), "
      "%d in a wider\nband with its reason, and %d as bounds: limits that the run stays within, "
      "no predictions.\n",
      cases.size(), n.exact, n.formula, n.predicted, n.wider, n.bounds);
}

}  // namespace

void add_napkin_check(CLI::App& napkin) {
  CLI::App* command =
      napkin.add_subcommand("check", "Every published run against what brrr says of it");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->footer(
      "Bands: exact 1 %, formulas and memory 3 %, predictions 15 %, where no reason is named. A\n"
      "bound is a limit (at most, at least) with the share of it that the run reached, and why "
      "not all.");
  command->callback([json] { run(*json); });
}

}  // namespace brrr::cli
