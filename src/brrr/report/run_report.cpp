#include "brrr/report/run_report.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ranges>

#include "brrr/base/embedded_text.h"
#include "brrr/base/error.h"
#include "brrr/io/atomic_file.h"
#include "brrr/report/html.h"
#include "brrr/report/run_facts.h"
#include "brrr/run/speed_regime.h"

namespace brrr::report {
namespace {

// Nothing comes from outside the page. Colours of the style differ in lightness as well as in hue, so that they can be
// told apart in grey and by most eyes; lines differ in style besides.
std::string page(const std::string& title, const std::string& body, const std::string& charts) {
  return join_text(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      html_escaped(title), "</title>\n<style>\n", embedded_text("report/assets/page.css"),
      "</style>\n</head>\n<body>\n<main>\n", body,
      "</main>\n<script id=\"charts\" type=\"application/json\">", script_json(charts),
      "</script>\n<script>\n", embedded_text("report/assets/charts.js"),
      "</script>\n</body>\n</html>\n");
}

std::string paragraph(const std::string& text, std::string_view attributes = "") {
  return text.empty() ? "" : join_text("<p", attributes, ">", html_escaped(text), "</p>\n");
}

std::string list(const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string out = "<p class=\"soft\">What to do next</p>\n<ul>\n";
  for (const std::string& item : items) out += join_text("<li>", html_escaped(item), "</li>\n");
  return out + "</ul>\n";
}

std::string heading(const runs::RunLog& run) {
  const runs::RunFacts& facts = run.facts;
  const bool good = facts.status == "running" || facts.status == "finished";
  std::string out =
      join_text("<h1>", html_escaped(facts.name.empty() ? "A run of brrr" : facts.name),
                "<span class=\"badge\" style=\"color:var(--", good ? "good" : "warn", ")\">",
                html_escaped(facts.status), "</span></h1>\n");
  out += paragraph(facts.reason);
  std::string line = join_text("brrr ", facts.brrr_version);
  if (!facts.started.empty()) line += ", started " + facts.started;
  if (!facts.device.empty()) line += ", on " + facts.device;
  return out + paragraph(line, " class=\"soft\"");
}

std::string fact_cards(const runs::RunLog& run) {
  std::string out = "<div class=\"facts\">\n";
  for (const RunFact& fact : headline_facts(run)) {
    out += join_text("<div class=\"fact\"><b>", html_escaped(fact.value), "</b><span>",
                     html_escaped(fact.name), "</span></div>\n");
  }
  return out + "</div>\n";
}

// The shares of the predicted time as one bar.
std::string regime_bar(const runs::SpeedRegime& speed) {
  constexpr const char* kNames[] = {"compute", "bandwidth", "overhead"};
  if (speed.share[0] + speed.share[1] + speed.share[2] <= 0) return "";
  std::string bar = "<div class=\"bar\">", words;
  for (int r = 0; r < 3; ++r) {
    bar += fmt::format(
        "<div style=\"width:{:.2f}%;background:var(--c{})\" title=\"{}-bound: {:.0f} %\"></div>",
        100 * speed.share[r], r, kNames[r], 100 * speed.share[r]);
    words +=
        fmt::format("<span><i style=\"border-top-color:var(--c{})\"></i>{}-bound {:.0f} %</span>",
                    r, kNames[r], 100 * speed.share[r]);
  }
  return bar + "</div>\n<div class=\"legend\">" + words + "</div>\n";
}

std::string regimes(const runs::LearningRegime& learning, const runs::SpeedRegime& speed) {
  return join_text(
      "<h2>How it learns, and what bounds its speed</h2>\n<div class=\"pair\">\n<div "
      "class=\"card\">\n",
      "<p class=\"soft\">Learning</p>\n<p><b>", html_escaped(learning.what), "</b></p>\n",
      paragraph(learning.why), paragraph(learning.regularisation),
      paragraph(learning.capacity, " class=\"soft\""), list(learning.next),
      "</div>\n<div class=\"card\">\n<p class=\"soft\">Speed</p>\n<p><b>", html_escaped(speed.what),
      "</b></p>\n", regime_bar(speed), paragraph(speed.why), list(speed.next), "</div>\n</div>\n");
}

std::string kernel_table(const runs::RunFacts& facts) {
  constexpr size_t kMostRows = 15;
  if (facts.kernels.empty()) return "";
  std::string out =
      "<details><summary>The longest kernels of a step, as predicted</summary>\n<div class=\"card "
      "scroll\">"
      "<table>\n<tr><th>kernel</th><th class=\"n\">calls</th><th class=\"n\">time</th><th "
      "class=\"n\">work</th>"
      "<th class=\"n\">traffic</th><th>bound by</th></tr>\n";
  for (size_t i = 0; i < std::min(kMostRows, facts.kernels.size()); ++i) {
    const runs::KernelFact& k = facts.kernels[i];
    out += fmt::format(
        "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td>{}</td></tr>\n",
        html_escaped(k.name), k.calls, to_text(Seconds(k.seconds)), to_text(Flops(k.flops)),
        to_text(Bytes(static_cast<int64_t>(k.bytes))), html_escaped(k.regime));
  }
  return out + "</table></div></details>\n";
}

std::string samples(const runs::RunLog& run) {
  std::string out;
  for (const runs::StepRecord& record : std::views::reverse(run.steps)) {  // the newest first
    if (record.sample.empty()) continue;
    out += join_text("<details", out.empty() ? " open" : "", "><summary>step ",
                     with_commas(record.step), "</summary>\n<div class=\"card\"><pre>",
                     html_escaped(record.sample), "</pre></div></details>\n");
  }
  return out.empty() ? "" : "<h2>What it wrote</h2>\n" + out;
}

std::string pretty_json(const std::string& text) {
  const auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  return json.is_discarded()
             ? text
             : json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string settings(const runs::RunLog& run, const std::string& config) {
  std::string out = "<h2>Settings</h2>\n";
  if (!config.empty())
    out += join_text(
        "<details open><summary>config.toml, every setting of the run</summary>\n"
        "<div class=\"card\"><pre>",
        html_escaped(config), "</pre></div></details>\n");
  return out + join_text("<details><summary>the model</summary>\n<div class=\"card\"><pre>",
                         html_escaped(pretty_json(run.facts.model_json)),
                         "</pre></div></details>\n");
}

std::string read_if_there(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

constexpr std::string_view kChartPlace =
    "<h2>Curves</h2>\n<noscript>The curves are drawn by a script, which this browser does not "
    "run.</noscript>\n"
    "<div id=\"drawn\" class=\"charts\"></div>\n";

}  // namespace

std::string run_report_html(const runs::RunLog& run, const std::string& config) {
  const runs::LearningRegime learning = runs::judge_learning(run);
  const runs::SpeedRegime speed = runs::judge_speed(run);
  std::string body = heading(run) + fact_cards(run) + regimes(learning, speed);
  body += kChartPlace;
  body += kernel_table(run.facts) + samples(run) + settings(run, config);
  if (!run.facts.mfu_convention.empty())
    body += paragraph("MFU: " + run.facts.mfu_convention, " class=\"soft\"");
  return page(run.facts.name.empty() ? "A run of brrr" : run.facts.name, body,
              run_charts_json(run, learning));
}

void write_run_report(const std::filesystem::path& run_folder) {
  const runs::RunLog run = runs::read_run_log(run_folder);
  write_file_atomically(run_folder / "report.html",
                        run_report_html(run, read_if_there(run_folder / "config.toml")));
}

std::string compared_report_html(const std::vector<NamedRun>& runs) {
  std::string body =
      "<h1>Runs beside each other</h1>\n<div class=\"card scroll\"><table>\n<tr><th></th>";
  for (const NamedRun& named : runs) body += join_text("<th>", html_escaped(named.name), "</th>");
  body += "</tr>\n";
  for (const ComparedFact& fact : compared_facts(runs)) {
    body += join_text("<tr><td class=\"soft\">", html_escaped(fact.name), "</td>");
    for (const std::string& value : fact.values)
      body += join_text("<td>", html_escaped(value), "</td>");
    body += "</tr>\n";
  }
  body += "</table></div>\n";
  body += kChartPlace;
  return page("Runs beside each other", body, compared_charts_json(runs));
}

}  // namespace brrr::report
