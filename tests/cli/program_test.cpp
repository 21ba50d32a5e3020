// The program as a person or a script meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "brrr/graph/op_def.h"
#include "support/run_program.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using testing::HasSubstr;

TEST(Program, ListsEveryOp) {
  const Outcome table = run("ops"), json = run("ops --json");
  EXPECT_EQ(table.status, 0);
  EXPECT_THAT(table.output, HasSubstr("softmax"));
  EXPECT_EQ(nlohmann::json::parse(json.output).size(), all_ops().size());
}

TEST(Program, KnowsTheLimitsOfDTypes) {
  for (const auto& row : nlohmann::json::parse(run("dtypes --json").output)) {
    if (row["name"] == "f8e4m3") {
      EXPECT_EQ(row["max"], 448);
    }
    if (row["name"] == "i4") {
      EXPECT_EQ(row["min"], -8);
    }
  }
  EXPECT_THAT(run("dtypes").output, HasSubstr("65504"));
}

TEST(Program, MeasuresThisMachine) {
  const auto devices = nlohmann::json::parse(run("devices --json").output);
  EXPECT_GT(devices["cpu"]["measured_f32_flops_per_second"], 1e8);
  EXPECT_TRUE(!devices["gpus"].empty() || devices.contains("no_gpu_because"));
}

TEST(Program, SweepsOpsByName) {
  const Outcome result = run("sweep neg relu");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.output, HasSubstr("2 ops, 22 checks held, 0 failed"));
}

TEST(Program, SaysWhatIsWrongAndExitsWithTwo) {
  const Outcome unknown = run("sweep gleu");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.output, HasSubstr("no op named \"gleu\""));
  const Outcome nothing = run(""), flag = run("ops --jsn"), command = run("genrate x"),
                nested = run("data prepar"), far = run("xyzzy"),
                value = run("tokenize train --kind x"),
                nobody = run("data prepare --tokenizr=bytes");
  for (const Outcome& outcome : {nothing, flag, command, nested, far, value, nobody})
    EXPECT_EQ(outcome.status, 2) << outcome.output;
  EXPECT_THAT(nothing.output, HasSubstr("a command is needed: one of"));
  EXPECT_THAT(flag.output, HasSubstr("brrr ops has no option --jsn; did you mean --json?"));
  EXPECT_THAT(command.output, HasSubstr("no command brrr genrate; did you mean generate?"));
  EXPECT_THAT(nested.output, HasSubstr("no command brrr data prepar; did you mean prepare?"));
  EXPECT_THAT(far.output, HasSubstr("there are bench, calibrate"));
  EXPECT_THAT(nobody.output, HasSubstr("did you mean --tokenizer?"));
}

TEST(Program, ExitsWithOneWhereNobodyIsToBlame) {
  // The table goes to a disk that is full, the message comes back.
  const Outcome full = run("dtypes 3>&1 > /dev/full 2>&3; exit $?; :");
  EXPECT_EQ(full.status, 1);
  EXPECT_THAT(full.output, HasSubstr("the output cannot be written: No space left on device"));
}

TEST(Program, HelpsWithExamplesForEveryCommand) {
  for (const char* command : {"bench intensity", "calibrate", "completion", "data prepare",
                              "data info", "devices", "dtypes", "eval", "explain", "generate",
                              "models", "ops", "profile", "sweep", "tokenize train"}) {
    const Outcome help = run(std::string(command) + " --help");
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.output, HasSubstr("Example")) << command;
  }
}

TEST(Program, HelpsWithExamples) {
  EXPECT_THAT(run("--help").output, HasSubstr("brrr sweep gelu"));
  EXPECT_EQ(run("--version").status, 0);
}

TEST(Program, ExplainsAGraphFromText) {
  const TempFolder folder;
  const std::string text =
      "input %0: f32[2, 3] \"x\"\nstate %1: f32[3, 4] \"w\"\n%2: f32[2, 4] = matmul %0 %1\n"
      "%3: f32[] = sum %2 {axes=[0, 1] keep_dims=false}\nreturn %3\n";
  const std::string graph =
      "explain --hardware H100 --graph " + folder.write("graph.txt", text).string();
  EXPECT_EQ(run(graph + " --stage trace").output,
            text + "# 2 nodes, 56 FLOPs, 140 B touched when each runs by itself\n");
  EXPECT_THAT(run(graph + " --stage joint").output, HasSubstr("backward"));
  EXPECT_THAT(run(graph + " --stage remat").output, HasSubstr("needed by"));
  EXPECT_THAT(run(graph + " --stage fuse --dot").output, HasSubstr("digraph"));
  EXPECT_EQ(nlohmann::json::parse(run(graph + " --stage joint --json").output)["inputs"].size(),
            1U);
  const std::string svg = (folder / "plan.svg").string();
  EXPECT_THAT(run(graph + " --stage plan --svg " + svg).output, HasSubstr("(uncalibrated)"));
  EXPECT_TRUE(std::filesystem::exists(svg));
  EXPECT_THAT(run(graph + " --stage melt").output, HasSubstr("use one of trace"));
  EXPECT_EQ(run("explain --stage plan").status, 2) << "a program is needed";
}

// A 70B-class model: 80 layers of width 8192 have 64 billion parameters.
TEST(Program, PlansWhatDoesNotFit) {
  const Outcome plan = run(
      "explain --hardware H100 --model gpt2-1558m --layers 80 --width 8192 --heads 64 --batch 1 "
      "--seq 128 --stage plan --json");
  ASSERT_EQ(plan.status, 0) << plan.output;
  EXPECT_GT(nlohmann::json::parse(plan.output)["state_bytes"].get<double>(), 3 * 4 * 64e9);
}

TEST(Program, ProfilesAStep) {
  const TempFolder folder;
  const std::string trace = (folder / "trace.json").string();
  const Outcome result =
      run("profile --model gpt2-tiny --batch 1 --seq 16 --steps 1 --hardware H100 "
          "--what-if overhead=0 --json --trace " +
          trace);
  ASSERT_EQ(result.status, 0) << result.output;
  const auto profile = nlohmann::json::parse(result.output);
  EXPECT_GT(profile["kernels"].size(), 10U);
  EXPECT_GT(profile["batch_test"]["seconds_at_twice"], 0);
  EXPECT_LT(profile["what_if"]["predicted_seconds"], profile["predicted_seconds"]);
  EXPECT_TRUE(nlohmann::json::parse(std::ifstream(trace)).contains("traceEvents"));
  EXPECT_EQ(run("profile --model gpt2-tiny --what-if speed=2").status, 2);
}

TEST(Program, RefusesRatesThatAreNone) {
  const TempFolder folder;
  const auto path = folder.write("rates.json", "{\"format\": \"brrr rates\", \"version\": 7}");
  const Outcome result = run("explain --model mlp --rates " + path.string());
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, HasSubstr("has version 7"));
}

TEST(Program, BenchesSmall) {
  EXPECT_THAT(run("bench intensity --elements 4096 --rounds 1").output, HasSubstr("ridge found"));
  EXPECT_THAT(run("bench cos --elements 65536 --rounds 1").output, HasSubstr("faster than eager"));
  EXPECT_THAT(run("bench regimes --max-n 64 --rounds 1 --hardware H100").output,
              HasSubstr("overhead ends"));
}

}  // namespace
}  // namespace brrr
