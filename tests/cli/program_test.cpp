// The program as a person or a script meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "brrr/graph/op_def.h"
#include "support/run_program.h"

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

TEST(Program, SaysWhatIsWrongAndExitsWithOne) {
  const Outcome unknown = run("sweep gleu");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.output, HasSubstr("no op named \"gleu\""));
  EXPECT_NE(run("").status, 0) << "a command is needed";
  EXPECT_NE(run("ops --jsn").status, 0);
}

TEST(Program, HelpsWithExamples) {
  EXPECT_THAT(run("--help").output, HasSubstr("brrr sweep gelu"));
  EXPECT_EQ(run("--version").status, 0);
}

}  // namespace
}  // namespace brrr
