// `brrr train` as a person or a script meets it: bad input, signals, and kill -9 at any instant.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "support/run_program.h"
#include "support/sanitized.h"
#include "train/small_run.h"

namespace brrr {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

class TrainCommand : public testing::Test {
 protected:
  TrainCommand() { text_ = folder_.write("text.txt", small_text(60)); }

  std::string arguments(const std::string& name) const {
    return join_text("train ", text_.string(), " --out ", (folder_ / name).string(),
                     " --layers 1 --heads 2 --width 16 --context 16 --batch 4 --dropout 0.1"
                     " --sample-every 0 --eval-every 100 --eval-batches 1 --threads 1 ");
  }
  Outcome train(const std::string& name, const std::string& more) const {
    return run(arguments(name) + more);
  }
  // A process of its own, whose output nobody reads.
  static pid_t start(const std::string& line) {
    const pid_t child = fork();
    if (child != 0) return child;
    const int nothing = open("/dev/null", O_WRONLY);
    dup2(nothing, 1), dup2(nothing, 2);
    const std::string command = join_text("exec ", BRRR_PROGRAM, " ", line);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  static bool has_ended(pid_t child, int& status) {
    return waitpid(child, &status, WNOHANG) == child;
  }

  size_t log_bytes(const std::string& name) const {
    std::error_code missing;
    const auto size = fs::file_size(folder_ / name / "log.jsonl", missing);
    return missing ? 0 : size;
  }

  TempFolder folder_;
  fs::path text_;
};

constexpr int kKills = kIsSanitized ? 3 : 8;  // a start takes seconds there

// BRRR_KILLS=50 for the long form.
TEST_F(TrainCommand, SurvivesKillAtAnyInstant) {
  const char* wanted = std::getenv("BRRR_KILLS");
  const int kills = wanted ? std::atoi(wanted) : kKills, steps = 40 * kills;
  const std::string settings = join_text("--steps ", steps, " --save-every 3 ");
  ASSERT_EQ(train("whole", settings).status, 0);

  std::mt19937 random(std::random_device{}());
  int killed = 0, sessions = 0;
  for (int status = 0; killed < kills; ++sessions) {
    ASSERT_LT(sessions, 20 * kills) << "it ends before it can be killed";
    const bool goes_on = fs::exists(folder_ / "cut" / "config.toml");
    const pid_t child = start(arguments("cut") + settings + (goes_on ? "--resume" : ""));
    // Half of them at once, anywhere in the start; the others once steps are being made.
    const size_t before = log_bytes("cut");
    const bool in_steps = killed % 2 == 1;
    while (in_steps && log_bytes("cut") <= before + 500 && !has_ended(child, status))
      std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(random() % (in_steps ? 60 : 400)));
    if (kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child)
      killed += WIFSIGNALED(status) ? 1 : 0;
    ASSERT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) != 0) << "a resume failed";
    if (runs::find_checkpoint(folder_ / "cut").step == steps) break;
  }
  std::printf("%d kills in %d sessions\n", killed, sessions + 1);
  EXPECT_GE(killed, kills / 2) << "the run must not end before it has been disturbed";
  const Outcome last = train("cut", settings + "--resume");
  ASSERT_EQ(last.status, 0) << last.output;
  const std::string name = runs::checkpoint_name(steps);
  EXPECT_EQ(weights_of(folder_ / "cut" / "checkpoints" / name),
            weights_of(folder_ / "whole" / "checkpoints" / name));
  const runs::RunLog cut = runs::read_run_log(folder_ / "cut"),
                     whole = runs::read_run_log(folder_ / "whole");
  ASSERT_EQ(cut.steps.size(), whole.steps.size()) << "one line a step";
  for (size_t i = 0; i < cut.steps.size(); ++i)
    ASSERT_EQ(cut.steps[i].loss, whole.steps[i].loss) << i;
}

TEST_F(TrainCommand, SignalsFinishTheStepAndSave) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string name = join_text("run", signal);
    const pid_t child = start(arguments(name) + "--steps 1000000 --save-every 1000000");
    while (log_bytes(name) < 2000) std::this_thread::sleep_for(milliseconds(2));
    kill(child, signal);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    const runs::RunLog log = runs::read_run_log(folder_ / name);
    EXPECT_EQ(log.facts.status, "stopped");
    EXPECT_EQ(runs::find_checkpoint(folder_ / name).step, log.steps.back().step);
  }
}

TEST_F(TrainCommand, EndsWithTheReportAndTheWayOn) {
  const Outcome result = train("a", "--steps 20");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("step 20/20"), HasSubstr("tok/s"), HasSubstr("MFU"),
                                   HasSubstr("report.html"), HasSubstr("brrr generate")));
  EXPECT_TRUE(fs::exists(folder_ / "a" / "report.html"));
  EXPECT_THAT(train("a", "--steps 20").output, HasSubstr("holds a run already"));
  const auto json = nlohmann::json::parse(train("b", "--steps 3 --json").output);
  EXPECT_EQ(json["status"], "finished");
  EXPECT_EQ(json["steps"], 3);
}

TEST_F(TrainCommand, TheFileThatARunWritesStartsTheSameRun) {
  ASSERT_EQ(train("a", "--steps 6 --seed 5").status, 0);
  const fs::path config = folder_ / "a" / "config.toml";
  ASSERT_EQ(run(join_text("train --config ", config.string(), " --threads 1 --out ",
                          (folder_ / "b").string()))
                .status,
            0);
  EXPECT_EQ(weights_of(folder_ / "a/checkpoints/step-00000006"),
            weights_of(folder_ / "b/checkpoints/step-00000006"));
}

TEST_F(TrainCommand, ADryRunPlansAndLeavesNothing) {
  const Outcome result = train("a", "--steps 50 --dry-run");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("memory"), HasSubstr("disk"), HasSubstr("time")));
  EXPECT_FALSE(fs::exists(folder_ / "a"));
  const auto json = nlohmann::json::parse(train("a", "--steps 50 --dry-run --json").output);
  EXPECT_GT(json["memory_bytes"], 0);
  EXPECT_GT(json["seconds"], 0);
  EXPECT_EQ(json["data"]["is_estimate"], true);
  const fs::path more = folder_.write("more.txt", small_text(20));
  const Outcome mixed = run(join_text("train ", text_.string(), " ", more.string(),
                                      " --weights 1,3 --steps 50 --dry-run"));
  EXPECT_THAT(mixed.output, HasSubstr(join_text("75 % of the rows from ", more.string(), ", ")));
}

TEST_F(TrainCommand, BadInputIsAUserErrorThatNamesTheWayOut) {
  const auto expect_error = [&](const std::string& line, const std::string& words) {
    const Outcome result = run(join_text("train ", line, " --out ", (folder_ / "bad").string()));
    EXPECT_EQ(result.status, 2) << line << "\n" << result.output;
    EXPECT_THAT(result.output, HasSubstr(words)) << line;
  };
  expect_error((folder_ / "none.txt").string(), "none.txt: there is no such file");
  expect_error(folder_.write("empty.txt", "").string(), "empty.txt is empty");
  expect_error(folder_.write("blank.txt", "  \n ").string(), "no training text is left");
  expect_error(text_.string() + " --context 1000000 --steps 2", "a smaller --context");
  expect_error(text_.string() + " --width 30 --heads 4 --layers 1 --steps 2",
               "4 heads do not divide");
  expect_error(text_.string() + " --optimizer adamx --steps 2", "there is no optimizer \"adamx\"");
  expect_error(text_.string() + " --tokenizer nowhere.json --steps 2", "nowhere.json");
  expect_error(text_.string() + " --stesp 3", "--stesp");
  expect_error("--config " + folder_.write("c.toml", "[train]\nstesp = 3\n").string(),
               "did you mean train.steps?");
  expect_error(text_.string() + " --weights 1,2 --steps 2",
               "data.weights has 2 numbers for 1 files");
  expect_error(text_.string() + " --weights 0 --steps 2", "positive numbers are needed");
  expect_error(text_.string() + " --weights half --steps 2", "data.weights = half: a number");
  expect_error("--resume", "holds no run");
  const Outcome onto_a_file = run(join_text("train --out ", text_.string()));
  EXPECT_EQ(onto_a_file.status, 2);
  EXPECT_THAT(onto_a_file.output, HasSubstr("is a file; name a folder with --out"));
  expect_error(text_.string() + " --layers 60 --width 8192 --heads 64 --batch 1 --steps 2",
               "of memory");
}

TEST_F(TrainCommand, ADryRunSaysWhatWouldBeRefused) {
  const std::string large = " --layers 4 --width 65536 --heads 64 --context 16 --batch 3 --steps 2";
  const Outcome told = run(join_text("train ", text_.string(), large, " --dry-run"));
  EXPECT_EQ(told.status, 0) << told.output;
  EXPECT_THAT(told.output, AllOf(HasSubstr("it would be refused"), HasSubstr("smaller model")));
  const auto json = nlohmann::json::parse(
      run(join_text("train ", text_.string(), large, " --dry-run --json")).output);
  EXPECT_EQ(json["fits"], false);
  EXPECT_THAT(json["lack"], HasSubstr("of memory"));
}

// From text to tokens to a model that writes: the folder of tokens brings its tokenizer along.
TEST_F(TrainCommand, PreparedTokensBringTheirTokenizer) {
  const std::string tokenizer = (folder_ / "tok.json").string(),
                    tokens = (folder_ / "tokens").string(), model = (folder_ / "run").string();
  ASSERT_EQ(
      run(join_text("tokenize train --vocab 300 --out ", tokenizer, " ", text_.string())).status,
      0);
  const Outcome prepared = run(
      join_text("data prepare ", text_.string(), " --tokenizer ", tokenizer, " --out ", tokens));
  ASSERT_EQ(prepared.status, 0) << prepared.output;
  const std::string train = join_text("train ", tokens,
                                      " --layers 1 --heads 2 --width 16 --steps 4 "
                                      "--context 16 --out ",
                                      model);
  const Outcome trained = run(train);
  ASSERT_EQ(trained.status, 0) << trained.output;
  EXPECT_THAT(trained.output, AllOf(HasSubstr("tokenizer.brrr.json"), HasSubstr("it writes")));
  EXPECT_EQ(run(join_text("generate ", model, " --prompt Once --tokens 3")).status, 0);

  const Outcome again = run(train + "2 --tokenizer bpe");
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.output, HasSubstr("holds tokens already"));
  ASSERT_EQ(run(join_text("tokenize train --vocab 290 --out ", tokens, "/tokenizer.brrr.json ",
                          text_.string()))
                .status,
            0);
  const Outcome foreign = run(train + "2");
  EXPECT_EQ(foreign.status, 2);
  EXPECT_THAT(foreign.output, HasSubstr("name the right one with --tokenizer"));
}

TEST_F(TrainCommand, TokensOfOthersTrainWithoutATokenizerAndSaySo) {
  std::vector<uint16_t> ids(4000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint16_t>(i * i % 50);
  const fs::path tokens = folder_.write_values<uint16_t>("train.bin", ids);
  const std::string model = (folder_ / "run").string();
  const Outcome trained =
      run(join_text("train ", tokens.string(), " --vocab 50 --layers 1 --heads 2 ",
                    "--width 16 --context 16 --steps 4 --out ", model));
  ASSERT_EQ(trained.status, 0) << trained.output;
  EXPECT_THAT(trained.output, HasSubstr("it writes no text"));
  const Outcome written = run(join_text("generate ", model, " --prompt Once"));
  EXPECT_EQ(written.status, 2);
  EXPECT_THAT(written.output, HasSubstr("--tokenizer"));
}

TEST_F(TrainCommand, TakesAnyBytesAndVeryShortTexts) {
  std::string bytes = small_text(10);
  for (size_t i = 0; i < bytes.size(); i += 7) bytes[i] = static_cast<char>(0x80 + i % 100);
  const fs::path broken = folder_.write("broken.txt", bytes);
  const std::string small = " --layers 1 --heads 2 --width 16 --steps 4 --out ";
  const Outcome odd = run(join_text("train ", broken.string(), small, (folder_ / "odd").string()));
  EXPECT_EQ(odd.status, 0) << odd.output;
  const fs::path tiny = folder_.write("tiny.txt", "the quick brown fox jumps over the lazy dog. ");
  const Outcome shortest =
      run(join_text("train ", tiny.string(), small, (folder_ / "tiny").string()));
  EXPECT_EQ(shortest.status, 0) << shortest.output;
}

}  // namespace
}  // namespace brrr
