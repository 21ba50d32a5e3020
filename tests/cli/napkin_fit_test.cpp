// `brrr napkin fit` as a program: what it finds `brrr napkin train` confirms, quickly, and it tells what it assumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "brrr/base/error.h"
#include "support/run_program.h"

namespace brrr {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

json ask(const std::string& arguments) {
  const Outcome result = run(arguments + " --json");
  EXPECT_EQ(result.status, 0) << arguments << "\n" << result.output;
  return json::parse(result.output, nullptr, false);
}

void expect_confirmed(const json& plan) {
  const auto command = plan["train"].get<std::string>();
  ASSERT_TRUE(command.starts_with("brrr napkin train ")) << command;
  const json train = ask(command.substr(5));
  EXPECT_TRUE(train["fits"].get<bool>()) << command;
  for (const char* key : {"params", "count", "seq", "global_batch", "step_seconds", "mfu"})
    EXPECT_EQ(train[key], plan[key]) << key << " of " << command;
  EXPECT_EQ(train["memory_bytes"], plan["memory_bytes"]) << command;
  if (!plan.contains("days")) return;
  EXPECT_EQ(train["days"], plan["days"]) << command;
  EXPECT_EQ(train["cost_usd"], plan["cost_usd"]) << command;
}

TEST(NapkinFit, TrainConfirmsEveryAnswer) {
  for (const char* question :
       {"--find plan --model llama3-405b --tokens 15.6e12 --days 100 --gpu h100 --count 16128 "
        "--price 2 --seq 8192 --global-batch 2016",
        "--find plan --model deepseek-v3 --tokens 14.8e12 --days 90 --gpu h200 --price 2 "
        "--precision fp8",
        "--find gpus --model llama3-405b --gpu h100",
        "--find context --model llama3-8b --gpu h100 --count 8 --optimizer adamw8bit",
        "--find batch --model llama3-8b --gpu h100 --count 8 --unfused --tokens 1e12 --price 3"}) {
    const json found = ask(std::string("napkin fit ") + question);
    expect_confirmed(found);
  }
  const json model = ask("napkin fit --gpu h100 --count 8 --grads f32");
  expect_confirmed(model["with_activations"]);
  rusage used{};
  ASSERT_EQ(getrusage(RUSAGE_CHILDREN, &used), 0);
  EXPECT_LT(used.ru_maxrss, 1 << 20) << "KiB of the largest program so far: below 1 GiB";
}

TEST(NapkinFit, CountIsTheMost) {
  const std::string plan =
      "napkin fit --find plan --model llama3-405b --tokens 15.6e12 --days 100 --gpu h100 --price 2 "
      "--seq 8192 --global-batch 2016 --count ";
  EXPECT_LE(ask(plan + "16128")["count"].get<int64_t>(), 16128);
  const Outcome few = run(plan + "2016");
  EXPECT_EQ(few.status, 2);
  EXPECT_THAT(few.output, AllOf(HasSubstr("the quickest plan of up to 2,016 devices is"),
                                HasSubstr("times too slow: "), HasSubstr("days and $")));
  EXPECT_THAT(run("napkin fit --find gpus --model llama3-405b --gpu h100 --count 64").output,
              HasSubstr("states of 6493.7 GB take 82 devices and up to 64 devices were asked for"));
}

TEST(NapkinFit, TellsNoDaysWithoutTokens) {
  const std::string question = "napkin fit --find gpus --model llama3-8b --gpu h100";
  const std::string without = run(question).output, with = run(question + " --tokens 1e12").output;
  EXPECT_THAT(without, Not(HasSubstr("days")));
  EXPECT_THAT(with, HasSubstr("for 1e+12 tokens"));
  EXPECT_FALSE(ask(question).contains("days"));
  EXPECT_TRUE(ask(question + " --tokens 1e12").contains("days"));
}

TEST(NapkinFit, TellsWhatItAssumedAndSearched) {
  unsetenv("COLUMNS");
  for (const char* question :
       {"--find gpus --model llama3-8b", "--find context --model llama3-8b --count 2",
        "--find batch --model llama3-8b --count 4",
        "--find plan --model llama3-8b --tokens 1e11 --days 30", "--count 8"}) {
    const std::string text = run(std::string("napkin fit --gpu h100 ") + question).output;
    EXPECT_THAT(text, AllOf(HasSubstr("  sequence  "), HasSubstr("of them a step: "),
                            HasSubstr("Assumptions\n"), HasSubstr("dense"),
                            HasSubstr("Searched: tp over divisors of heads"),
                            HasSubstr("The same by: brrr napkin train --")));
  }
}

TEST(NapkinFit, RefusesWhatItWouldNotUse) {
  const auto refused = [](const char* arguments) {
    const Outcome result = run(std::string("napkin fit --gpu h100 ") + arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    return result.output;
  };
  EXPECT_THAT(refused("--model llama3-8b"), HasSubstr("looks for a model itself"));
  EXPECT_THAT(refused("--params 7e9"), HasSubstr("looks for a model itself"));
  EXPECT_THAT(refused("--family llama --layers 8"), HasSubstr("looks for a model itself"));
  EXPECT_THAT(refused("--find context --model llama3-8b --seq 4096"),
              HasSubstr("--find context does not take --seq"));
  EXPECT_THAT(refused("--find batch --model llama3-8b --micro-batch 4"),
              HasSubstr("--find batch does not take --micro-batch"));
  EXPECT_THAT(refused("--find gpus --model llama3-8b --days 4"),
              HasSubstr("--days is the deadline of --find plan"));
  EXPECT_THAT(refused("--find gpus --params 7e9"), HasSubstr("give --model"));
}

}  // namespace
}  // namespace brrr
