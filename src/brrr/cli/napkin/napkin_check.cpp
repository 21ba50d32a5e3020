// brrr napkin check: published runs against what this library says of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/cli/exit_codes.h"
#include "brrr/cli/napkin/napkin.h"
#include "brrr/plan/published/published.h"
#include "brrr/report/terminal.h"

namespace brrr::cli {
namespace {

// The band, or of a bound its side and the share of it that was reached.
std::string band_text(const plan::PublishedCase& c) {
  if (c.kind != plan::CaseClass::bound) return fmt::format("{:g} %", 100 * c.band);
  return fmt::format("{} {:.0f} %", c.side == plan::Side::most ? "max" : "min", 100 * c.reached());
}

std::string error_text(double error) {
  return fmt::format(fmt::runtime(std::abs(error) < 1 ? "{:+.1f} %" : "{:+.0f} %"), 100 * error);
}

const char* verdict_of(const plan::PublishedCase& c) {
  if (!c.holds()) return "outside";
  if (c.kind == plan::CaseClass::bound) return "bound";
  return c.band > plan::usual_band(c.kind) ? "wider band" : "inside";
}

void print_json(const std::vector<plan::PublishedCase>& cases) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const plan::PublishedCase& c : cases)
    rows.push_back({{"id", c.id},
                    {"what", c.what},
                    {"unit", c.unit},
                    {"published", c.published},
                    {"predicted", c.predicted},
                    {"error", c.error()},
                    {"class", plan::to_text(c.kind)},
                    {"band", c.band},
                    {"source", c.source},
                    {"reason", c.reason},
                    {"calibration", c.calibration},
                    {"verdict", verdict_of(c)},
                    {"holds", c.holds()}});
  std::puts(rows.dump(1).c_str());
}

// Ids without repeats, in order: "A19, A20, A22".
void add_id(std::string& ids, const std::string& id) {
  if (ids.ends_with(id)) return;
  ids += join_text(ids.empty() ? "" : ", ", id);
}

// Texts in the order in which they first come, each with its cases.
using Notes = std::vector<std::pair<std::string, std::string>>;
Notes noted(const std::vector<plan::PublishedCase>& cases, std::string plan::PublishedCase::*text) {
  Notes notes;
  for (const plan::PublishedCase& c : cases) {
    if ((c.*text).empty()) continue;
    auto known = std::find_if(notes.begin(), notes.end(),
                              [&](const auto& note) { return note.second == c.*text; });
    if (known == notes.end()) known = notes.insert(known, {"", c.*text});
    add_id(known->first, c.id);
  }
  return notes;
}

// As in JSON, in a word.
std::string short_verdict(const plan::PublishedCase& c) {
  const std::string verdict = verdict_of(c);
  return verdict.substr(0, verdict.find(' '));
}

void print_cases(const std::vector<plan::PublishedCase>& cases) {
  report::Table table({"id", "case", "published", "ours", "unit", "error", "band", "verdict"});
  for (const plan::PublishedCase& c : cases) {
    table.row(join_text(c.id, c.holds() ? "" : " !"), c.what, fmt::format("{:.4g}", c.published),
              fmt::format("{:.4g}", c.predicted), c.unit, error_text(c.error()), band_text(c),
              short_verdict(c));
  }
  print_table(table);
  std::puts("");
  print_paragraph(
      "A bound: ours is the most (max) or the least (min) that there can be, with the share of it "
      "that "
      "the run reached.");
  std::puts("\nWhy a band is wider, or a bound not reached");
  for (const auto& [ids, reason] : noted(cases, &plan::PublishedCase::reason))
    std::fputs(report::wrapped_text("  ", join_text(ids, ": ", reason), output_columns()).c_str(),
               stdout);
  std::puts("\nPredictions that take a number from another run");
  for (const auto& [ids, calibration] : noted(cases, &plan::PublishedCase::calibration))
    std::fputs(
        report::wrapped_text("  ", join_text(ids, ": ", calibration), output_columns()).c_str(),
        stdout);
  std::puts("\nSources");
  for (const auto& [ids, source] : noted(cases, &plan::PublishedCase::source))
    std::fputs(report::wrapped_text("  ", join_text(source, ": ", ids), output_columns()).c_str(),
               stdout);
}

void run(bool json) {
  const std::vector<plan::PublishedCase> cases = plan::published_cases();
  json ? print_json(cases) : print_cases(cases);
  const plan::CaseCounts n = plan::count(cases);
  if (n.outside > 0)
    throw CheckFailed(fmt::format("{} of {} published numbers are outside their band or bound",
                                  n.outside, cases.size()));
  if (json) return;
  std::puts("");
  print_paragraph(fmt::format(
      "{} numbers hold: {} exact (1 %), {} formulas and memory (3 %), {} predictions (15 %; {} of "
      "them take a number from another run), {} in a wider band with its reason, and {} as bounds: "
      "limits that the run stays within, no predictions.",
      cases.size(), n.exact, n.formula, n.predicted, n.calibrated, n.wider, n.bounds));
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
