// brrr doctor and brrr compare, on runs that never were.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/made_up_run.h"
#include "support/run_program.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Doctor, SaysBothRegimesAndWhatToDoNext) {
  const TempFolder folder;
  write_run(folder.path(), made_up_run("stories", true));
  const Outcome text = run("doctor " + folder.path().string());
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.output, HasSubstr("Overfitting since step"));
  EXPECT_THAT(text.output, HasSubstr("use the checkpoint of step"));
  EXPECT_THAT(text.output, HasSubstr("Compute-bound: 71 %"));
  const auto json = nlohmann::json::parse(run("doctor --json " + folder.path().string()).output);
  EXPECT_EQ(json["learning"]["kind"], "overfitting");
  EXPECT_NEAR(json["speed"]["share"]["compute"].get<double>(), 0.11 / 0.135, 1e-6);
  EXPECT_FALSE(json["seems_dead"]);
  EXPECT_FALSE(std::filesystem::exists(folder / "report.html")) << "only where asked for";
  EXPECT_EQ(run("doctor --report " + folder.path().string()).status, 0);
  EXPECT_THAT(read_file(folder / "report.html"), HasSubstr("Overfitting since step"));
}

TEST(Doctor, TellsARunningRunFromOneThatWasKilled) {
  const TempFolder folder;
  runs::RunLog running = made_up_run("stories", false);
  running.facts.status = "running";
  running.steps.resize(80);  // three evaluations
  write_run(folder.path(), running);
  const std::string now = run("doctor " + folder.path().string()).output;
  EXPECT_THAT(now, HasSubstr("Too early to say: 3 of the 4 evaluations"));
  EXPECT_THAT(now, Not(HasSubstr("seems to be gone")));
  const auto log = folder / "log.jsonl";
  std::filesystem::last_write_time(log,
                                   std::filesystem::last_write_time(log) - std::chrono::hours(3));
  EXPECT_THAT(run("doctor " + folder.path().string()).output, HasSubstr("wrote nothing for 3 h"));
}

TEST(Doctor, WhatIsNoRunIsRefused) {
  const TempFolder folder;
  const Outcome result = run("doctor " + folder.path().string());
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.output, HasSubstr("has no run.json"));
}

TEST(Compare, ShowsResultsDifferencesAndCurves) {
  const TempFolder folder;
  write_run(folder / "a", made_up_run("large", true));
  write_run(folder / "b", made_up_run("small", false));
  folder.write("a/config.toml", "[model]\nwidth = 128\n[train]\nlr = 0.001\n");
  folder.write("b/config.toml", "[model]\nwidth = 64\n[train]\nlr = 0.001\n");
  const std::string both = (folder / "a").string() + " " + (folder / "b").string();
  const Outcome text = run("compare " + both + " --html " + (folder / "page.html").string());
  EXPECT_EQ(text.status, 0) << text.output;
  EXPECT_THAT(text.output, HasSubstr("validation loss, best"));
  EXPECT_THAT(text.output, HasSubstr("model.width"));
  EXPECT_THAT(text.output, Not(HasSubstr("train.lr")));
  EXPECT_THAT(text.output, HasSubstr("training loss, smoothed"));
  EXPECT_THAT(read_file(folder / "page.html"), HasSubstr("Validation loss"));
  const auto json = nlohmann::json::parse(run("compare --json " + both).output);
  EXPECT_EQ(json["runs"].size(), 2U);
  EXPECT_EQ(json["runs"][0]["evaluations"].size(), 24U);
  EXPECT_EQ(json["differences"]["model.width"], nlohmann::json({"128", "64"}));
}

TEST(Compare, LossesMustBeWithinWhatIsAskedFor) {
  const TempFolder folder;
  runs::RunLog first = made_up_run("first", true), second = first;
  write_run(folder / "a", first);
  write_run(folder / "b", second);
  const std::string both = (folder / "a").string() + " " + (folder / "b").string();
  const Outcome equal = run("compare " + both + " --within 0");
  EXPECT_EQ(equal.status, 0) << equal.output;
  EXPECT_THAT(equal.output, HasSubstr("equal to the last bit"));
  second.steps[6].loss *= 1.001;
  write_run(folder / "b", second);
  EXPECT_EQ(run("compare " + both + " --within 0.01").status, 0);
  const Outcome apart = run("compare " + both + " --within 1e-4");
  EXPECT_EQ(apart.status, 1);
  EXPECT_THAT(apart.output, HasSubstr("at step " + std::to_string(second.steps[6].step)));
  const auto json = nlohmann::json::parse(run("compare --json " + both).output);
  EXPECT_NEAR(json["largest_loss_difference"].get<double>(), 1e-3, 1e-9);
}

TEST(Compare, OneRunIsTooFew) {
  const TempFolder folder;
  write_run(folder.path(), made_up_run("a", true));
  const Outcome result = run("compare " + folder.path().string());
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.output, HasSubstr("two runs or more"));
}

}  // namespace
}  // namespace brrr
