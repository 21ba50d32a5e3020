#include "brrr/run/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>

#include "support/error_of.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;

runs::StepRecord plain(int64_t step) {
  return {.step = step,
          .loss = 7.0 / static_cast<double>(step),
          .lr = 1e-3,
          .grad_norm = 1,
          .tokens_per_second = 1000,
          .ms = 12.5};
}

runs::RunFacts some_facts() {
  runs::RunFacts facts{.brrr_version = "0.1.0", .name = "first", .status = "finished"};
  facts.model_json = R"({"family":"gpt2","width":64})";
  facts.parameters = 124439808;
  facts.predicted_memory = 3_GiB;
  facts.kernels = {{.name = "matmul",
                    .calls = 12,
                    .flops = 1e9,
                    .bytes = 1e6,
                    .seconds = 0.1,
                    .regime = "compute"}};
  facts.memory_timeline = {{.phase = "forward", .bytes = 7}, {.phase = "backward", .bytes = 9}};
  return facts;
}

void write_steps(const TempFolder& folder, int64_t from, int64_t to, int64_t keep = 0) {
  runs::RunLogWriter log(folder.path(), keep);
  for (int64_t step = from; step <= to; ++step) log.add(plain(step));
}

TEST(StepRecord, ALineHasTheFieldsThatEveryReaderNeedsAndNoOthers) {
  const auto line = nlohmann::json::parse(runs::to_json(plain(3)));
  std::vector<std::string> names;
  for (const auto& item : line.items()) names.push_back(item.key());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("step", "loss", "lr", "grad_norm",
                                                     "tokens_per_second", "ms"));
}

TEST(StepRecord, KeepsEveryFieldAndEveryBit) {
  runs::StepRecord record = plain(17);
  record.loss = std::nextafter(2.3, 3);
  record.mfu = 0.41;
  record.memory_bytes = 3e9;
  record.train_loss = 1.0 / 3;
  record.validation_loss = 1.5;
  record.activations = {{"layer 0", 12.5}, {"logits", 3.25}};
  record.guard = "spike: skipped";
  record.sample = "Once \"upon\"\na time";
  const runs::StepRecord back = runs::parse_step_record(runs::to_json(record), "here");
  EXPECT_EQ(back.step, 17);
  EXPECT_EQ(back.loss, record.loss);
  EXPECT_EQ(back.mfu, record.mfu);
  EXPECT_EQ(back.memory_bytes, record.memory_bytes);
  EXPECT_EQ(back.train_loss, record.train_loss);
  EXPECT_EQ(back.validation_loss, record.validation_loss);
  EXPECT_EQ(back.activations, record.activations);
  EXPECT_EQ(back.guard, record.guard);
  EXPECT_EQ(back.sample, record.sample);
}

TEST(StepRecord, NumbersThatJsonLacksAreNullAndReadAsNaN) {
  runs::StepRecord record = plain(1);
  record.loss = std::numeric_limits<double>::quiet_NaN();
  record.grad_norm = std::numeric_limits<double>::infinity();
  const std::string line = runs::to_json(record);
  EXPECT_THAT(line, HasSubstr(R"("loss":null)"));
  EXPECT_TRUE(std::isnan(runs::parse_step_record(line, "here").loss));
  EXPECT_TRUE(std::isnan(runs::parse_step_record(line, "here").grad_norm));
}

TEST(StepRecord, ASampleCutInsideACharacterIsStillALineOfJson) {
  runs::StepRecord record = plain(1);
  record.sample = "na\xC3";
  EXPECT_EQ(runs::parse_step_record(runs::to_json(record), "here").sample, "na\xEF\xBF\xBD");
}

TEST(RunLog, IsReadBackAsItWasWritten) {
  const TempFolder folder;
  runs::write_run_facts(folder.path(), some_facts());
  write_steps(folder, 1, 3);
  const runs::RunLog run = runs::read_run_log(folder.path());
  EXPECT_EQ(run.facts.name, "first");
  EXPECT_EQ(run.facts.parameters, 124439808);
  EXPECT_EQ(run.facts.predicted_memory, 3_GiB);
  EXPECT_EQ(nlohmann::json::parse(run.facts.model_json)["width"], 64);
  ASSERT_EQ(run.facts.kernels.size(), 1U);
  EXPECT_EQ(run.facts.kernels[0].regime, "compute");
  ASSERT_EQ(run.facts.memory_timeline.size(), 2U);
  EXPECT_EQ(run.facts.memory_timeline[1].bytes, 9);
  ASSERT_EQ(run.steps.size(), 3U);
  EXPECT_EQ(run.steps[2].step, 3);
}

TEST(RunLog, ARunBeforeItsFirstStepHasNoSteps) {
  const TempFolder folder;
  runs::write_run_facts(folder.path(), some_facts());
  EXPECT_TRUE(runs::read_run_log(folder.path()).steps.empty());
}

TEST(RunLog, ALineThatIsBeingWrittenIsLeftOut) {
  const TempFolder folder;
  runs::write_run_facts(folder.path(), some_facts());
  folder.write("log.jsonl", runs::to_json(plain(1)) + "\n" + runs::to_json(plain(2)).substr(0, 20));
  EXPECT_EQ(runs::read_run_log(folder.path()).steps.size(), 1U);
}

TEST(RunLog, DamageIsNamedByFileAndLine) {
  const TempFolder folder;
  runs::write_run_facts(folder.path(), some_facts());
  const std::string first = runs::to_json(plain(1)) + "\n";
  const auto message = [&](const std::string& second) {
    folder.write("log.jsonl", first + second + "\n");
    return error_of([&] { runs::read_run_log(folder.path()); });
  };
  EXPECT_THAT(message("{\"step\": 2"), HasSubstr("log.jsonl:2 is not JSON"));
  EXPECT_THAT(message("[1]"), HasSubstr("log.jsonl:2 is not an object but array"));
  EXPECT_THAT(message(std::string(100000, '[')), HasSubstr("log.jsonl:2 is not JSON"));
  EXPECT_THAT(message(R"({"step":2})"), HasSubstr("log.jsonl:2: \"loss\" is missing"));
  EXPECT_THAT(message(first.substr(0, first.size() - 1)), HasSubstr("step 1 comes after step 1"));
  nlohmann::json line = nlohmann::json::parse(runs::to_json(plain(2)));
  line["loss"] = "low";
  EXPECT_THAT(message(line.dump()), HasSubstr("\"loss\" is not a number"));
  line["loss"] = 1;
  line["step"] = -1;
  EXPECT_THAT(message(line.dump()), HasSubstr("\"step\" is -1, which is not between 0 and"));
  line["step"] = 18446744073709551615ULL;
  EXPECT_THAT(message(line.dump()), HasSubstr("is not between 0 and 9223372036854775807"));
  line["step"] = 1.5;
  EXPECT_THAT(message(line.dump()), HasSubstr("\"step\" is not an integer"));
  line["step"] = 2;
  line["activations"] = {{"logits", "large"}};
  EXPECT_THAT(message(line.dump()), HasSubstr("\"logits\" is not a number"));
}

TEST(RunFacts, WhatIsNoRunIsNamed) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { runs::read_run_log(folder.path()); }), HasSubstr("has no run.json"));
  EXPECT_THAT(error_of([&] { runs::read_run_log(folder / "gone"); }), HasSubstr("is not a folder"));
  const auto message = [&](std::string_view text) {
    folder.write("run.json", text);
    return error_of([&] { runs::read_run_log(folder.path()); });
  };
  EXPECT_THAT(message(""), HasSubstr("run.json is not JSON"));
  EXPECT_THAT(message("{}"), HasSubstr("\"format\" is missing"));
  EXPECT_THAT(message(R"({"format":99})"), HasSubstr("has format 99; this brrr reads format 1"));
  EXPECT_THAT(message(R"({"format":1,"status":"odd"})"), HasSubstr("running, finished, stopped"));
  EXPECT_THAT(message(R"({"format":1,"status":"failed","threads":3000000000})"),
              HasSubstr("\"threads\" is 3000000000, which is not between"));
  EXPECT_THAT(message(R"({"format":1,"status":"failed","kernels":[3]})"), HasSubstr("\"kernels\""));
}

TEST(RunLogWriter, ResumingDropsLinesPastTheStepAndATornOne) {
  const TempFolder folder;
  runs::write_run_facts(folder.path(), some_facts());
  write_steps(folder, 1, 5);
  std::ofstream(folder / "log.jsonl", std::ios::app) << "{\"step\": 6, \"lo";
  {
    runs::RunLogWriter log(folder.path(), 3);
    EXPECT_EQ(log.last_step(), 3);
    EXPECT_EQ(log.dropped_lines(), 3);
    log.add(plain(4));
  }
  const runs::RunLog run = runs::read_run_log(folder.path());
  ASSERT_EQ(run.steps.size(), 4U);
  EXPECT_EQ(run.steps.back().step, 4);
}

TEST(RunLogWriter, TheSameStepsAfterAResumeMakeTheSameFile) {
  const TempFolder whole, resumed;
  write_steps(whole, 1, 6);
  write_steps(resumed, 1, 5);
  write_steps(resumed, 4, 6, 3);
  EXPECT_EQ(read_file(whole / "log.jsonl"), read_file(resumed / "log.jsonl"));
}

TEST(RunLogWriter, ANewRunBeginsWithAnEmptyLog) {
  const TempFolder folder;
  write_steps(folder, 1, 5);
  write_steps(folder, 1, 2);
  const std::string text = read_file(folder / "log.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST(RunLogWriter, KeepsNothingBehindDamage) {
  const TempFolder folder;
  folder.write("log.jsonl", runs::to_json(plain(1)) + "\n" + std::string(30, '\0') + "\n" +
                                runs::to_json(plain(3)) + "\n");
  const runs::RunLogWriter log(folder.path(), 10);
  EXPECT_EQ(log.last_step(), 1);
  EXPECT_EQ(log.dropped_lines(), 2);
}

TEST(RunLogWriter, TwoWritersOfOneLogAreRefused) {
  const TempFolder folder;
  const runs::RunLogWriter first(folder.path(), 0);
  EXPECT_THAT(error_of([&] { const runs::RunLogWriter second(folder.path(), 0); }),
              HasSubstr("another process is training into this folder"));
}

TEST(RunLogWriter, AStepIsLoggedOnce) {
  const TempFolder folder;
  runs::RunLogWriter log(folder.path(), 0);
  log.add(plain(1));
  EXPECT_THAT(error_of([&] { log.add(plain(1)); }), HasSubstr("step 1 was logged already"));
}

// A limit on the size of files stands for a full disk: the write that crosses it comes back short.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_ = {};
  void (*handler_)(int) = nullptr;
};

TEST(RunLogWriter, WithoutRoomTheLinesBeforeStayAndTheStepCanBeLoggedLater) {
  const TempFolder folder;
  runs::RunLogWriter log(folder.path(), 0);
  log.add(plain(1));
  const std::string before = read_file(folder / "log.jsonl");
  {
    const FileSizeLimit full(before.size() + 20);
    EXPECT_THAT(error_of([&] { log.add(plain(2)); }), HasSubstr("free some space and resume"));
  }
  EXPECT_EQ(read_file(folder / "log.jsonl"), before);
  log.add(plain(2));
  EXPECT_EQ(read_file(folder / "log.jsonl"), before + runs::to_json(plain(2)) + "\n");
}

}  // namespace
}  // namespace brrr
