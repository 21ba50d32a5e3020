// brrr ladder: from one interpreted FLOP to the whole machine.
#include "brrr/plan/ladder/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/base/units.h"
#include "brrr/cli/commands.h"
#include "brrr/cli/model_options.h"
#include "brrr/cli/napkin/napkin.h"
#include "brrr/report/svg_bars.h"
#include "brrr/report/table.h"

namespace brrr::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  plan::LadderOptions ladder;
  std::string svg;
  bool json = false;
};

std::string hardware_of(const plan::Ladder& ladder, const plan::Rung& rung) {
  if (rung.is_gpu()) return ladder.gpu.empty() ? "GPU" : ladder.gpu;
  return ladder.machine;
}

void print_json(const plan::Ladder& ladder) {
  Json rungs = Json::array(), claims = Json::array(), shares = Json::object();
  for (size_t i = 0; i < ladder.rungs.size(); ++i) {
    const plan::Rung& rung = ladder.rungs[i];
    Json row{{"name", rung.name},       {"what", rung.what},
             {"dtype", rung.dtype},     {"hardware", hardware_of(ladder, rung)},
             {"threads", rung.threads}, {"cause", plan::to_text(rung.cause)},
             {"aside", rung.is_aside}};
    if (rung.is_here()) {
      row["flops_per_second"] = rung.flops_per_second;
      row["factor"] = ladder.factor(i);
      row["share_of_peak"] = rung.flops_per_second / ladder.peak_of(rung);
    } else {
      row["missing"] = rung.missing;
    }
    rungs.push_back(std::move(row));
  }
  for (const plan::LadderClaim& claim : ladder.claims())
    claims.push_back({{"claim", claim.what},
                      {"least_orders", claim.least},
                      {"most_orders", claim.most},
                      {"orders", claim.is_measured ? Json(claim.measured) : Json()},
                      {"verdict", claim.verdict()}});
  for (const plan::CauseShare& share : ladder.shares())
    shares[std::string(plan::to_text(share.cause))] = share.share;
  Json json{{"machine", ladder.machine},
            {"threads", ladder.threads},
            {"peak_flops_per_second", ladder.peak_flops_per_second},
            {"gpu", ladder.gpu},
            {"gpu_peak_flops_per_second", ladder.gpu_peak_flops_per_second},
            {"rungs", rungs},
            {"claims", claims},
            {"shares", shares},
            {"flops_in_the_time_of_the_first", ladder.fastest() / ladder.slowest()}};
  std::puts(json.dump(1).c_str());
}

std::string factor_text(const plan::Ladder& ladder, size_t i) {
  const double factor = ladder.factor(i);
  if (factor == 0) return "";
  return fmt::format(fmt::runtime(ladder.rungs[i].is_aside ? "({:.2f})" : "{:.2f}"), factor);
}

// Why nothing of a GPU is here, where that is so: one line in place of seven rungs.
const plan::Rung* missing_gpu(const plan::Ladder& ladder) {
  for (const plan::Rung& rung : ladder.rungs) {
    if (rung.is_gpu()) return rung.is_here() ? nullptr : &rung;
  }
  return nullptr;
}

void print_rungs(const plan::Ladder& ladder) {
  print_paragraph(fmt::format("{}, {} threads: {} in f32, multiply-adds between registers",
                              ladder.machine, ladder.threads,
                              to_text(FlopsPerSecond(ladder.peak_flops_per_second))));
  const plan::Rung* no_gpu = missing_gpu(ladder);
  if (!no_gpu)
    print_paragraph(fmt::format("{}: {} in bf16, the best product of this run", ladder.gpu,
                                to_text(FlopsPerSecond(ladder.gpu_peak_flops_per_second))));
  report::Table table({"rung", "what", "dtype", "on", "GFLOP/s", "x below", "of peak"});
  for (size_t i = 0; i < ladder.rungs.size(); ++i) {
    const plan::Rung& rung = ladder.rungs[i];
    if (no_gpu && rung.is_gpu()) continue;
    if (!rung.is_here()) {
      table.row(rung.name, join_text("left out: ", rung.missing), rung.dtype, "", "-", "-", "-");
      continue;
    }
    table.row(rung.name, rung.what, rung.dtype,
              rung.is_gpu()       ? "the GPU"
              : rung.threads == 1 ? "1 thread"
                                  : fmt::format("{} threads", rung.threads),
              fmt::format(fmt::runtime(rung.flops_per_second < 1e12 ? "{:.4g}" : "{:.0f}"),
                          rung.flops_per_second / 1e9),
              factor_text(ladder, i),
              fmt::format("{:.3g} %", 100 * rung.flops_per_second / ladder.peak_of(rung)));
  }
  print_table(table);
  std::puts("");
  if (no_gpu) print_paragraph(join_text("GPU rungs left out: ", no_gpu->missing, "."));
  print_paragraph(
      "In brackets: a detour, from which the next rung does not go on. Shares are of the peak of "
      "the "
      "device that a rung runs on, whatever its dtype.");
  print_paragraph(
      fmt::format("In the time of one FLOP of the first rung ({}) this machine does {}.",
                  std::find_if(ladder.rungs.begin(), ladder.rungs.end(),
                               [](const plan::Rung& r) { return r.is_here(); })
                      ->name,
                  with_commas(static_cast<int64_t>(ladder.fastest() / ladder.slowest()))));
}

void print_claims(const plan::Ladder& ladder) {
  report::Table claims({"claim", "said", "measured", "verdict", "from", "to"});
  for (const plan::LadderClaim& claim : ladder.claims()) {
    claims.row(
        claim.what,
        fmt::format("{:.0f} to {:.0f} x", std::pow(10, claim.least), std::pow(10, claim.most)),
        claim.is_measured ? fmt::format("{:.0f} x", std::pow(10, claim.measured)) : "-",
        claim.verdict(), claim.from, claim.to);
  }
  std::puts("");
  print_table(claims);
}

void print_shares(const plan::Ladder& ladder) {
  report::Table table({"cause", "factor", "share", "what held back", "steps"});
  for (const plan::CauseShare& share : ladder.shares())
    table.row(plan::to_text(share.cause), fmt::format("{:.3g}", share.factor),
              fmt::format("{:.0f} %", 100 * share.share), plan::meaning(share.cause), share.steps);
  table.rule();
  double all = 1;
  for (const plan::CauseShare& share : ladder.shares()) all *= share.factor;
  table.row("all of them", fmt::format("{:.3g}", all), "100 %", "", "");
  std::puts("");
  print_table(table);
  std::puts("");
  print_paragraph(
      "Factors multiply; a share is log(factor) / log(all of them), so that shares add up.");
}

void print_tables(const plan::Ladder& ladder) {
  print_rungs(ladder);
  print_claims(ladder);
  print_shares(ladder);
}

std::string svg_of(const plan::Ladder& ladder) {
  std::vector<report::SvgBar> bars;
  for (size_t i = 0; i < ladder.rungs.size(); ++i) {
    const plan::Rung& rung = ladder.rungs[i];
    if (!rung.is_here()) continue;
    const double factor = ladder.factor(i);
    bars.push_back({.name = rung.name,
                    .value = rung.flops_per_second / 1e9,
                    .label = factor > 0 ? fmt::format("{:.3g}  (x {:.2g})",
                                                      rung.flops_per_second / 1e9, factor)
                                        : fmt::format("{:.3g}", rung.flops_per_second / 1e9),
                    .group = factor > 0 ? std::string(plan::to_text(rung.cause)) : "the first",
                    .is_faint = rung.is_aside});
  }
  const std::string gpu = ladder.gpu.empty() ? "" : join_text(" and ", ladder.gpu);
  return report::svg_bars(
      bars, {.title = fmt::format("From one interpreted FLOP to all of {}, {} threads{}",
                                  ladder.machine, ladder.threads, gpu),
             .axis = "GFLOP/s (in brackets: over the rung below; pale: a detour); "
                     "colours: what the step takes away"});
}

void run(const Options& options) {
  const plan::Ladder ladder = plan::climb(options.ladder);
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
  command->footer(
      "Takes about ten seconds. A quiet machine gives steadier rungs.\n"
      "Examples:\n  brrr ladder\n  brrr ladder --svg ladder.svg");
  command->callback([options] { run(*options); });
}

}  // namespace brrr::cli
