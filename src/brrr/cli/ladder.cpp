// brrr ladder: from one interpreted FLOP to the whole machine.
#include "brrr/napkin/ladder.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/base/units.h"
#include "brrr/cli/commands.h"
#include "brrr/cli/model_options.h"
#include "brrr/report/svg_plot.h"
#include "brrr/report/table.h"

namespace brrr::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  LadderOptions ladder;
  std::string svg;
  bool json = false;
};

void print_json(const Ladder& ladder) {
  Json rungs = Json::array(), claims = Json::array(), shares = Json::object();
  for (const Rung& rung : ladder.rungs) {
    Json row{
        {"name", rung.name}, {"what", rung.what}, {"dtype", rung.dtype}, {"threads", rung.threads}};
    if (rung.flops_per_second > 0) {
      row["flops_per_second"] = rung.flops_per_second;
    } else {
      row["missing"] = rung.missing;
    }
    rungs.push_back(std::move(row));
  }
  for (const LadderClaim& claim : ladder.claims())
    claims.push_back({{"claim", claim.what}, {"verdict", claim.verdict()}});
  for (const auto& [cause, share] : ladder.shares()) shares[std::string(to_text(cause))] = share;
  Json json{{"machine", ladder.machine},
            {"threads", ladder.threads},
            {"peak_flops_per_second", ladder.peak_flops_per_second},
            {"rungs", rungs},
            {"claims", claims},
            {"shares", shares},
            {"flops_in_the_time_of_the_first", ladder.fastest() / ladder.slowest()}};
  std::puts(json.dump(1).c_str());
}

void print_tables(const Ladder& ladder) {
  Table table({"rung", "what", "dtype", "threads", "GFLOP/s", "x below", "of peak"},
              fmt::format("{}, {} threads, measured f32 peak {}", ladder.machine, ladder.threads,
                          to_text(FlopsPerSecond(ladder.peak_flops_per_second))));
  double below = 0;
  for (const Rung& rung : ladder.rungs) {
    const double peak =
        rung.peak_flops_per_second > 0 ? rung.peak_flops_per_second : ladder.peak_flops_per_second;
    if (rung.flops_per_second <= 0) {
      table.row(rung.name, join_text("skipped: ", rung.missing), rung.dtype, "", "-", "", "");
      continue;
    }
    table.row(rung.name, rung.what, rung.dtype,
              rung.threads > 0 ? std::to_string(rung.threads) : "GPU",
              fmt::format("{:.4g}", rung.flops_per_second / 1e9),
              below > 0 ? fmt::format("{:.2f}", rung.flops_per_second / below) : "",
              fmt::format("{:.3g} %", 100 * rung.flops_per_second / peak));
    below = rung.flops_per_second;
  }
  std::fputs(table.text().c_str(), stdout);
  std::printf("\nIn the time of one FLOP of the first rung this machine does %.0f.\n",
              ladder.fastest() / ladder.slowest());
  Table claims({"claim", "measured"});
  for (const LadderClaim& claim : ladder.claims()) claims.row(claim.what, claim.verdict());
  std::printf("\n%s", claims.text().c_str());
  Table shares({"cause", "share of the way, in logarithms"});
  for (const auto& [cause, share] : ladder.shares())
    shares.row(to_text(cause), fmt::format("{:.0f} %", 100 * share));
  std::printf("\n%s", shares.text().c_str());
}

std::string svg_of(const Ladder& ladder) {
  SvgCurve curve{.name = "GFLOP/s", .points = {}};
  SvgPlotOptions options{.title = join_text("The ladder on ", ladder.machine),
                         .x_label = "rung",
                         .y_label = "GFLOP/s",
                         .log_y = true};
  double place = 0;
  for (const Rung& rung : ladder.rungs) {
    if (rung.flops_per_second <= 0) continue;
    curve.points.emplace_back(place, rung.flops_per_second / 1e9);
    options.marks.emplace_back(place, rung.name);
    place += 1;
  }
  return svg_plot({curve}, options);
}

void run(const Options& options) {
  const Ladder ladder = climb(options.ladder);
  if (!options.svg.empty()) write_file(options.svg, svg_of(ladder));
  options.json ? print_json(ladder) : print_tables(ladder);
}

}  // namespace

void add_ladder(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "ladder", "From one interpreted FLOP to the whole machine, measured in one run");
  const auto options = std::make_shared<Options>();
  command->add_option("--size", options->ladder.size, "Of the matrices, a multiple of 48")
      ->capture_default_str();
  command
      ->add_option("--slow-size", options->ladder.slow_size, "For the slow rungs, a multiple of 48")
      ->capture_default_str();
  command->add_option("--python", options->ladder.python, "The interpreter of the first rung")
      ->capture_default_str();
  command->add_option("--svg", options->svg, "Write a plot");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer("Example:\n  brrr ladder --svg ladder.svg");
  command->callback([options] { run(*options); });
}

}  // namespace brrr::cli
