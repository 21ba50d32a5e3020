#include "brrr/report/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "brrr/report/html.h"
#include "support/made_up_run.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string page_of(const runs::RunLog& run, const std::string& config = "steps = 600\n") {
  return report::run_report_html(run, config);
}

TEST(RunReport, IsOnePageThatNeedsNothingFromOutside) {
  const std::string page = page_of(made_up_run("first", true));
  EXPECT_FALSE(std::regex_search(page, std::regex(R"((src|href)\s*=)")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  EXPECT_THAT(page, Not(HasSubstr("url(")));
  // The one address in it is the name of the SVG format, which nothing fetches.
  std::string rest = page;
  const std::string svg = "http://www.w3.org/2000/svg";
  ASSERT_NE(rest.find(svg), std::string::npos);
  rest.erase(rest.find(svg), svg.size());
  EXPECT_THAT(rest, Not(HasSubstr("://")));
}

TEST(RunReport, SaysBothRegimesAndTheFacts) {
  const std::string page = page_of(made_up_run("first", true));
  EXPECT_THAT(page, HasSubstr("Overfitting since step"));
  EXPECT_THAT(page, HasSubstr("Compute-bound: 71 %"));
  EXPECT_THAT(page, HasSubstr("more capacity may help again"));
  EXPECT_THAT(page, HasSubstr("2 M"));
  EXPECT_THAT(page, HasSubstr("steps = 600"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
}

TEST(RunReport, NothingThatARunContainsBecomesMarkup) {
  const std::string evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&";
  runs::RunLog run = made_up_run(evil, false);
  runs::RunFacts& facts = run.facts;
  for (std::string* text :
       {&facts.brrr_version, &facts.reason, &facts.started, &facts.device, &facts.mfu_convention,
        &facts.speed_regime, &facts.speed_advice, &facts.status})
    *text = evil;
  facts.model_json = nlohmann::json({{evil, evil}}).dump();
  facts.kernels[0].name = facts.kernels[0].regime = facts.memory_timeline[0].phase = evil;
  for (runs::StepRecord& record : run.steps) {
    record.sample = record.guard = evil;
    record.activations[evil] = 1;
  }
  const std::string page = page_of(run, evil);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  const std::string compared =
      report::compared_report_html({{.name = evil, .run = run}, {.name = "b", .run = run}});
  EXPECT_THAT(compared, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(compared, Not(HasSubstr("<img")));
}

TEST(RunReport, AFolderIsAllItNeeds) {
  const TempFolder folder;
  write_run(folder.path(), made_up_run("first", false));
  folder.write("config.toml", "[train]\nsteps = 600\n");
  report::write_run_report(folder.path());
  EXPECT_THAT(read_file(folder / "report.html"), HasSubstr("[train]"));
}

TEST(RunReport, ARunBeforeItsFirstStepHasAPageToo) {
  runs::RunLog run;
  run.facts.name = "young";
  EXPECT_THAT(page_of(run), HasSubstr("Too early to say"));
}

TEST(RunCharts, ShowWhatWasRecordedAndNothingElse) {
  const runs::RunLog run = made_up_run("first", true);
  const auto titles = [](const runs::RunLog& shown) {
    std::vector<std::string> all;
    for (const auto& chart :
         nlohmann::json::parse(report::run_charts_json(shown, runs::judge_learning(shown))))
      all.push_back(chart["title"]);
    return all;
  };
  EXPECT_THAT(titles(run), ::testing::ElementsAre(
                               "Loss", "Learning rate", "Gradient norm", "Throughput",
                               "Largest activations", "Model FLOPs utilisation",
                               "Memory of the process", "Memory of a step, kernel by kernel",
                               "What bounds the speed: kernels under the roofs of the machine"));
  runs::RunLog plain = run;
  plain.facts.kernels.clear();
  plain.facts.memory_timeline.clear();
  for (runs::StepRecord& record : plain.steps) {
    record.mfu.reset();
    record.memory_bytes.reset();
    record.activations.clear();
  }
  EXPECT_THAT(titles(plain),
              ::testing::ElementsAre("Loss", "Learning rate", "Gradient norm", "Throughput"));
}

TEST(RunCharts, ThinningKeepsEverySpikeAndItsPlace) {
  report::Points points;
  for (int i = 0; i < 100000; ++i) points.emplace_back(i, 1 + 0.001 * (i % 7));
  points[54321].second = 99;
  points[777].second = -5;
  points[1000].second = NAN;
  const report::Points kept = report::thinned(points, 1000);
  EXPECT_LE(kept.size(), 1000U);
  EXPECT_THAT(kept, ::testing::Contains(std::pair<double, double>(54321, 99)));
  EXPECT_THAT(kept, ::testing::Contains(std::pair<double, double>(777, -5)));
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
}

TEST(Html, EscapesWhatMarkupIsMadeOf) {
  EXPECT_EQ(report::html_escaped("a<b>&\"'\x01\n"), "a&lt;b&gt;&amp;&quot;&#39;\xEF\xBF\xBD\n");
  EXPECT_EQ(report::script_json(R"({"a":"</script>"})"), R"({"a":"\u003c/script>"})");
}

}  // namespace
}  // namespace brrr
