// `brrr napkin` and `brrr ladder` as programs: answers, stable JSON, and refusals that name the rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "support/run_program.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

json ask(const std::string& arguments) {
  const Outcome result = run("napkin " + arguments + " --json");
  EXPECT_EQ(result.status, 0) << result.output;
  return json::parse(result.output, nullptr, false);
}

TEST(NapkinProgram, AnswersTheLecturesQuestions) {
  const json train = ask("train --params 70e9 --tokens 15e12 --gpu h100 --count 1024 --mfu 0.5");
  EXPECT_NEAR(train["days"].get<double>(), 143.93, 0.005);
  EXPECT_EQ(train["total_flops"].get<double>(), 6.3e24);
  EXPECT_EQ(ask("fit --gpu h100 --count 8 --precision f32")["params"].get<double>(), 40e9);
  EXPECT_NEAR(ask("budget --gpu h100 --count 8 --days 7")["total_flops"].get<double>(), 4.79e21,
              0.005e21);
}

TEST(NapkinProgram, A405BPlanIsQuick) {
  const auto begin = std::chrono::steady_clock::now();
  const json plan =
      ask("train --model llama3-405b --tokens 15.6e12 --gpu h100 --count 16128 --tp 8 --pp 18 "
          "--zero 1 --seq 8192 "
          "--global-batch 2016 --goodput 0.9");
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(plan["params"].get<double>(), 405853388800.0);
  EXPECT_TRUE(plan["predicted"].get<bool>());
  EXPECT_GT(plan["communication_bytes"]["tensor"].get<double>(), 0);
  EXPECT_LT(taken.count(), 2.0);
}

TEST(NapkinProgram, PrintsTablesWithFormulasAndAssumptions) {
  const Outcome train =
      run("napkin train --model llama3-8b --tokens 1e12 --gpu h100 --count 8 --zero 3");
  EXPECT_THAT(train.output,
              AllOf(HasSubstr("8,030,261,248"), HasSubstr("What binds"), HasSubstr("uncalibrated"),
                    HasSubstr("attention's share"), HasSubstr("6 N D instead")));
  EXPECT_THAT(run("napkin gpu h100").output,
              AllOf(HasSubstr("989.5"), HasSubstr("989.4"), HasSubstr("sparse")));
  EXPECT_THAT(run("napkin gpu").output, AllOf(HasSubstr("mi300x"), HasSubstr("tpu-v5p")));
  EXPECT_THAT(run("napkin op matmul 4096 4096 4096 --gpu a100").output,
              HasSubstr("tiles of 128 x 128"));
  EXPECT_THAT(run("napkin lint --model gpt2-124m --gpu h100").output, HasSubstr("pad to 50304"));
  EXPECT_THAT(
      run("napkin mfu --tokens-per-second 46096 --model llama3-8b --gpu h100 --count 8 --seq 8192")
          .output,
      HasSubstr("torchtitan"));
  EXPECT_THAT(run("napkin infer --model deepseek-v3 --gpu h200 --count 8 --weights fp8").output,
              HasSubstr("70272"));
}

TEST(NapkinProgram, RefusesWithTheRule) {
  const auto refuse = [](const std::string& arguments, const char* rule) {
    const Outcome result = run("napkin " + arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_THAT(result.output, HasSubstr(rule)) << arguments;
  };
  const std::string base = "train --tokens 1e9 --gpu h100 ";
  refuse(base + "--params 7e9 --mfu 1.5", "not in (0, 1]");
  refuse(base + "--params -7e9 --mfu 0.5", "parameters");
  refuse(base + "--model llama3-8b --count 12 --tp 3", "32 heads");
  refuse(base + "--model llama3-8b --count 5 --pp 5", "32 layers");
  refuse(base + "--model llama3-9b", "did you mean");
  refuse(base + "--model llama3-8b --peak 1979", "sparsity");
  refuse("train --tokens 1e9 --gpu h101 --params 1e9 --mfu 0.5", "h100-sxm");
  refuse("op conv 3 --gpu h100", "use one of");
}

TEST(NapkinProgram, VerifiesAStepToTheByte) {
  // A wide band: other work may run beside a test. Memory has none.
  const json v = ask("verify --model gpt2-tiny --batch 2 --seq 32 --steps 1 --band 100");
  EXPECT_TRUE(v["memory_exact"].get<bool>());
  EXPECT_GT(v["kernels"].size(), 5u);
}

TEST(LadderProgram, ClimbsAndDraws) {
  const TempFolder folder;
  const std::string svg = (folder.path() / "ladder.svg").string();
  const Outcome result =
      run("ladder --size 96 --slow-size 48 --json --python no-such-python --svg " + svg);
  ASSERT_EQ(result.status, 0) << result.output;
  const json ladder = json::parse(result.output);
  EXPECT_GE(ladder["rungs"].size(), 10u);
  EXPECT_THAT(ladder["rungs"][0]["missing"].get<std::string>(), HasSubstr("no-such-python"));
  EXPECT_GT(ladder["flops_in_the_time_of_the_first"].get<double>(), 1);
  EXPECT_TRUE(std::filesystem::exists(svg));
}

}  // namespace
}  // namespace brrr
