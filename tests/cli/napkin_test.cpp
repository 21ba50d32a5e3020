// `brrr napkin` and `brrr ladder` as programs: answers, stable JSON, and refusals that name the rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "brrr/base/error.h"
#include "brrr/report/table.h"
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

TEST(NapkinProgram, A405BPlanTakesLessThanAGibibyte) {
  const json plan =
      ask("train --model llama3-405b --tokens 15.6e12 --gpu h100 --count 16128 --tp 8 --pp 18 "
          "--zero 1 --seq 8192 "
          "--global-batch 2016 --goodput 0.9");
  EXPECT_EQ(plan["params"].get<double>(), 405853388800.0);
  EXPECT_TRUE(plan["predicted"].get<bool>());
  EXPECT_GT(plan["communication_bytes"]["tensor"].get<double>(), 0);
  rusage used{};
  ASSERT_EQ(getrusage(RUSAGE_CHILDREN, &used), 0);
  EXPECT_LT(used.ru_maxrss, 1 << 20) << "KiB of the largest program so far: below 1 GiB";
}

TEST(NapkinProgram, PredictsInferenceBesideItsBounds) {
  const json one = ask("infer --model llama2-13b --gpu a100-40 --context 512");
  EXPECT_GT(one["predicted_prefill_seconds"].get<double>(), one["prefill_seconds"].get<double>());
  EXPECT_GT(one["predicted_decode_seconds"].get<double>(), one["decode_seconds"].get<double>());
  EXPECT_NEAR(one["predicted_decode_seconds"].get<double>(), 22e-3, 0.15 * 22e-3);
  const json small = ask("infer --model llama2-13b --gpu a100-40 --context 512 --weights int4");
  EXPECT_LT(small["predicted_decode_seconds"].get<double>(),
            0.5 * one["predicted_decode_seconds"].get<double>());
  EXPECT_GT(small["predicted_decode_seconds"].get<double>(), small["decode_seconds"].get<double>());
  EXPECT_FALSE(
      ask("infer --model llama2-13b --gpu a100-40 --count 3").contains("predicted_decode_seconds"))
      << "40 heads over 3 devices";
}

TEST(NapkinProgram, PricesTheAttentionThatASystemHas) {
  const std::string base =
      "train --model gpt2-1558m --tokens 1e10 --gpu h100 --count 8 --zero 1 --attention ";
  const double current = ask(base + "current")["step_seconds"].get<double>(),
               flash2 = ask(base + "flash2")["step_seconds"].get<double>(),
               unfused = ask(base + "unfused")["step_seconds"].get<double>();
  EXPECT_LT(current, flash2);
  EXPECT_LT(flash2, unfused);
  EXPECT_LT(flash2, ask(base + "triton")["step_seconds"].get<double>());
  EXPECT_THAT(run("napkin " + base + "fast").output,
              HasSubstr("use current, flash2, unfused or triton"));
}

TEST(NapkinProgram, PricesTheFrameworkThatRunsAModel) {
  const std::string base =
      "train --model llama3-8b --tokens 1e10 --gpu h100 --count 8 --zero 3 --framework ";
  const json tuned = ask(base + "tuned"), compiled = ask(base + "compiled"),
             eager = ask(base + "eager");
  EXPECT_LT(tuned["step_seconds"].get<double>(), compiled["step_seconds"].get<double>());
  EXPECT_LT(compiled["step_seconds"].get<double>(), eager["step_seconds"].get<double>());
  EXPECT_THAT(tuned["assumptions"].dump(), Not(HasSubstr("framework")));
  EXPECT_THAT(eager["assumptions"].dump(),
              AllOf(HasSubstr("framework eager: 30 bytes of a logit and 14 of a sharded parameter"),
                    HasSubstr("8.6 us"), HasSubstr("one by one")));
  const Outcome unknown = run("napkin " + base + "jax");
  EXPECT_NE(unknown.status, 0);
  EXPECT_THAT(unknown.output, HasSubstr("use brrr, tuned, compiled or eager"));
  EXPECT_THAT(run("napkin train --help").output, HasSubstr("--framework"));
}

TEST(NapkinProgram, CountsBoundsApart) {
  const Outcome result = run("napkin check");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("as bounds"), HasSubstr("max 68 %"), HasSubstr("min 90 %"),
                    HasSubstr("take a number from another run"), HasSubstr("goodput from BLOOM")));
  int bounds = 0;
  for (const json& row : json::parse(run("napkin check --json").output)) {
    EXPECT_TRUE(row["holds"].get<bool>()) << row.dump();
    bounds += row["verdict"] == "bound" ? 1 : 0;
    if (row["verdict"] == "bound") {
      EXPECT_FALSE(row["reason"].get<std::string>().empty());
    }
  }
  EXPECT_THAT(result.output, HasSubstr(std::to_string(bounds) + " as bounds"));
}

TEST(NapkinProgram, FitRefusesWhatItSearches) {
  for (const char* option : {"--tp 4", "--pp 2", "--zero 1", "--recompute full"}) {
    const Outcome result =
        run(join_text("napkin fit --find batch --model llama3-8b --gpu h100 --count 8 ", option));
    EXPECT_EQ(result.status, 2) << option;
    EXPECT_THAT(result.output, HasSubstr("is not taken"));
  }
  EXPECT_THAT(run("napkin fit --find plan --model llama3-8b --tokens 1e12 --gpu h100").output,
              HasSubstr("needs --tokens and --days"));
}

TEST(NapkinProgram, RefusesNumbersThatAreNone) {
  const std::string base = "napkin train --model gpt2-124m --tokens 1e9 --gpu h100 --count 8 ";
  for (const char* bad : {"--watts inf", "--watts nan", "--price nan", "--price inf", "--pue inf",
                          "--network inf", "--mfu nan", "--goodput nan", "--peak nan"}) {
    const Outcome result = run(base + bad);
    EXPECT_EQ(result.status, 2) << bad << result.output;
  }
  const Outcome fast =
      run("napkin mfu --tokens-per-second 1e9 --model gpt2-124m --gpu h100 --count 1");
  EXPECT_EQ(fast.status, 2);
  EXPECT_THAT(fast.output, HasSubstr("nothing runs above it"));
}

// Names that others write into scripts.
TEST(NapkinProgram, KnowsEveryDeviceAndModelByItsName) {
  for (const char* gpu :
       {"v100-sxm2", "t4",        "a10",      "a100-40", "a100-80",  "a100-80-pcie", "l4",
        "l40s",      "h100-pcie", "h100-sxm", "h100",    "h100-nvl", "h200",         "b100",
        "b200",      "gb200",     "rtx3090",  "rtx4090", "rtx5090",  "mi250x",       "mi300x",
        "tpu-v4",    "tpu-v5e",   "tpu-v5p",  "tpu-v6e", "m1",       "m2-ultra",     "m4-max"})
    EXPECT_EQ(run(std::string("napkin gpu ") + gpu).status, 0) << gpu;
  const std::pair<const char*, double> models[] = {
      {"gpt2-124m", 124439808},     {"gpt2-350m", 354823168},      {"gpt2-774m", 774030080},
      {"gpt2-1558m", 1557611200},   {"gpt3-175b", 174604259328},   {"llama2-7b", 6738415616},
      {"llama2-13b", 13015864320},  {"llama2-70b", 68976648192},   {"llama3-8b", 8030261248},
      {"llama3-70b", 70553706496},  {"llama3-405b", 405853388800}, {"qwen2.5-0.5b", 494032768},
      {"qwen2.5-1.5b", 1543714304}, {"qwen2.5-7b", 7615616512},    {"mixtral-8x7b", 46702792704}};
  const std::string rest = " --tokens 1e12 --gpu h100 --count 64 --mfu 0.4 --seq 1024";
  for (const auto& [name, parameters] : models)
    EXPECT_EQ(ask("train --model " + std::string(name) + rest)["params"].get<double>(), parameters)
        << name;
  EXPECT_NEAR(ask("train --model deepseek-v3" + rest)["params"].get<double>(), 671e9, 1e9);
}

TEST(NapkinProgram, KeepsItsFieldNames) {
  const json plan = ask(
      "train --model gpt2-124m --tokens 1e10 --gpu a100 --count 8 --zero 1 --price 2 --unfused");
  for (const char* field : {"params", "flops_per_token", "total_flops", "step_seconds",
                            "tokens_per_second", "days", "gpu_hours", "cost_usd", "energy_kwh",
                            "mfu", "hfu", "fits", "binding", "memory_bytes", "assumptions"})
    EXPECT_TRUE(plan.contains(field)) << field;
  double sum = 0;
  for (const char* part :
       {"params", "grads", "master", "optimizer", "activations", "logits", "buffers", "overhead"})
    sum += plan["memory_bytes"][part].get<double>();
  EXPECT_NEAR(sum, plan["memory_bytes"]["total"].get<double>(), 1e-6 * sum);
  EXPECT_THAT(plan["assumptions"].dump(), HasSubstr("one by one"));
}

TEST(NapkinProgram, OpsOneByOneTakeLonger) {
  const std::string rest =
      " --model gpt2-124m --tokens 1e10 --gpu a100 --count 8 --zero 1 --framework tuned";
  EXPECT_GT(ask("train --unfused" + rest)["step_seconds"].get<double>(),
            1.05 * ask("train" + rest)["step_seconds"].get<double>());
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

TEST(NapkinProgram, SaysWhatAnOpCounts) {
  EXPECT_THAT(run("napkin op attention 1 32 1024 128 --gpu h100").output,
              AllOf(HasSubstr("that a causal mask leaves"), HasSubstr("--full")));
  const Outcome full = run("napkin op attention 1 32 1024 128 --full --gpu h100");
  EXPECT_THAT(full.output, AllOf(HasSubstr("4 B S T D"), HasSubstr("512.00 FLOP/B")));
  EXPECT_THAT(run("napkin op swiglu 512 1024 4096 --gpu h100").output, HasSubstr("6 B T D F"));
  EXPECT_THAT(run("napkin op softmax 64 4096 --gpu h100").output,
              AllOf(HasSubstr("5 M N + M read"), HasSubstr("4.00 x")));
  EXPECT_THAT(run("napkin gpu a100").output,
              AllOf(HasSubstr("108"), HasSubstr("40 MiB"), HasSubstr("192 KiB")));
  EXPECT_FALSE(ask("gpu tpu-v4").contains("l2_bytes")) << "not known";
}

TEST(NapkinProgram, NamesThePeakOfABound) {
  const std::string base = "infer --model llama3-8b --weights fp8 --gpu ";
  EXPECT_EQ(ask(base + "h100")["products_in"], "fp8");
  EXPECT_THAT(run("napkin " + base + "h100").output,
              AllOf(HasSubstr("2 N_products T / peak of fp8"), HasSubstr("stored in fp8")));
  EXPECT_EQ(ask(base + "a100")["products_in"], "bf16");
  EXPECT_THAT(run("napkin " + base + "a100").output, HasSubstr("has no rate of fp8"));
}

TEST(NapkinProgram, ShowsTheUpdateInAStep) {
  const std::string base = "train --model llama3-8b --tokens 1e12 --gpu h200 --count 8 --zero 1 ";
  EXPECT_THAT(run("napkin " + base + "--optimizer muon").output,
              AllOf(HasSubstr("of it the update"), HasSubstr("Newton-Schulz")));
  EXPECT_LT(ask(base + "--optimizer sgd")["update_seconds"].get<double>(),
            ask(base + "--optimizer adamw")["update_seconds"].get<double>());
}

// Beside 40e9 parameters stands what they leave out.
TEST(NapkinProgram, SaysWhatTheLargestModelLeavesOut) {
  EXPECT_THAT(run("napkin fit --gpu h100 --count 8 --precision f32").output,
              AllOf(HasSubstr("activations are not counted"), HasSubstr("2 + 2 + 4 + 8 = 16 B")));
}

TEST(NapkinProgram, CountsSecondRunsByConvention) {
  const json mfu =
      ask("mfu --tokens-per-second 46096 --model llama3-8b --gpu h100 --count 8 --seq 8192 "
          "--recompute selective");
  EXPECT_NEAR(mfu["mfu"]["exact"].get<double>(), 0.2997, 5e-5);
  EXPECT_NEAR(mfu["hfu"]["exact"].get<double>(), 0.3122, 5e-5);
  EXPECT_NEAR(mfu["hfu"]["llmc"].get<double>(), 0.3306, 5e-5);
  EXPECT_NEAR(mfu["hfu"]["megatron"].get<double>(), 0.3622, 5e-5);
}

// What help shows as an example works as it stands there.
TEST(NapkinProgram, RunsTheExamplesOfItsHelp) {
  for (const char* command : {"train", "fit", "budget", "infer", "op", "lint", "mfu", "gpu"}) {
    std::string help = run(join_text("napkin ", command, " --help")).output;
    const size_t begin = help.find("Example");
    ASSERT_NE(begin, std::string::npos) << command;
    help = std::regex_replace(help.substr(begin), std::regex("\n {4,}"), " ");  // lines that go on
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) {
      const size_t at = line.find("brrr napkin ");
      if (at == std::string::npos) continue;
      const Outcome result = run(line.substr(at + std::string_view("brrr ").size()));
      EXPECT_EQ(result.status, 0) << line << "\n" << result.output;
    }
  }
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
  refuse(base + "--model llama3-8b --count 33 --pp 33", "32 layers");
  refuse(base + "--model llama3-9b", "did you mean");
  refuse(base + "--model llama3-8b --peak 1979", "sparsity");
  refuse("train --tokens 1e9 --gpu h101 --params 1e9 --mfu 0.5", "h100-sxm");
  refuse("op conv 3 --gpu h100", "use one of");
  refuse("op adamw 1.5 --gpu h100", "no whole number");
  refuse("op gelu 1e8 --gpu h100 --full", "the whole square of attention");
  refuse(base + "--model llama3-8b --node-size 0", "a node of 0 devices");
  refuse(base + "--model llama3-8b --network -3", "a network of -3 GB/s");
  refuse("mfu --tokens-per-second -4 --model llama3-8b --gpu h100", "below 0");
}

TEST(NapkinProgram, VerifiesAStepToTheByte) {
  // A wide band: other work may run beside a test. Memory has none.
  const json v = ask("verify --model gpt2-tiny --batch 2 --seq 32 --steps 1 --band 100");
  EXPECT_TRUE(v["memory_exact"].get<bool>());
  EXPECT_GT(v["kernels"].size(), 5u);
}

// Lines of answers in terminals of 80 and of 120 columns.
TEST(NapkinProgram, FitsTheTerminal) {
  const char* commands[] = {
      "train --model llama3-70b --tokens 15e12 --gpu h100 --count 1024 --tp 8 --zero 1",
      "fit --gpu h100 --count 8 --precision f32",
      "budget --gpu h100 --count 8 --days 7 --mfu 0.5",
      "infer --model deepseek-v3 --gpu h200 --count 8 --batch 32 --weights fp8",
      "op matmul 16384 8192 32768 --gpu h100",
      "lint --model gpt2-1558m --gpu a100-80",
      "mfu --tokens-per-second 46096 --model llama3-8b --gpu h100 --count 8 --seq 8192",
      "gpu",
      "gpu h100",
      "check"};
  for (const int columns : {80, 120}) {
    for (const char* command : commands) {
      ASSERT_EQ(setenv("COLUMNS", std::to_string(columns).c_str(), 1), 0);
      const Outcome result = run(join_text("napkin ", command));
      unsetenv("COLUMNS");
      EXPECT_EQ(result.status, 0) << result.output;
      std::istringstream lines(result.output);
      for (std::string line; std::getline(lines, line);)
        EXPECT_LE(report::display_width(line), columns) << command << "\n" << line;
    }
  }
}

// What a batch does not choose is not read: a mixture decodes at the rate of its touched experts.
TEST(NapkinProgram, DecodesAMixtureByWhatItTouches) {
  const json one = ask("infer --model mixtral-8x7b --gpu h100 --count 2");
  const double bound = one["decode_seconds"].get<double>(),
               predicted = one["predicted_decode_seconds"].get<double>();
  EXPECT_GT(predicted, bound);
  EXPECT_LT(predicted, 2 * bound) << "all eight experts would take 3.6 times as long";
  const json large = ask("infer --model deepseek-v3 --gpu h200 --count 8 --weights fp8 --batch 32");
  EXPECT_GT(large["predicted_decode_seconds"].get<double>(), large["decode_seconds"].get<double>());
  EXPECT_LT(large["predicted_decode_seconds"].get<double>(),
            2.5 * large["decode_seconds"].get<double>());
}

TEST(NapkinProgram, SaysWhichNumberIsWrong) {
  const auto refused = [](const char* arguments) {
    const Outcome result = run(join_text("napkin train --tokens 1e9 --gpu h100 ", arguments));
    EXPECT_EQ(result.status, 2) << arguments;
    return result.output;
  };
  EXPECT_THAT(refused("--params 0"), HasSubstr("--params 0: a model has 1 parameter or more"));
  EXPECT_THAT(refused("--model gpt2-124m --seq 0"), HasSubstr("--seq"));
  EXPECT_THAT(refused("--model gpt2-124m --global-batch 0"), HasSubstr("--global-batch"));
  EXPECT_THAT(refused("--model gpt2-124m --micro-batch 0"), HasSubstr("a micro-batch of 0"));
  EXPECT_THAT(refused("--model gpt2-124m --price -2"), HasSubstr("a price of $-2 an hour"));
  EXPECT_THAT(refused("--model gpt2-124m --watts -2"), HasSubstr("-2 W of a device"));
  EXPECT_THAT(refused("--model gpt2-124m --seq 4096"),
              HasSubstr("longer than the 1024 positions that the model has a table of"));
  EXPECT_EQ(
      ask("train --family gpt2 --layers 96 --hidden 12288 --heads 96 --seq 2048 --tokens 300e9 "
          "--gpu a100-80 --count 1024")["params"]
          .get<double>(),
      174'604'259'328.0)
      << "a free shape has as many positions as tokens";
  EXPECT_EQ(ask("fit --find context --model gpt2-124m --gpu h100")["value"].get<double>(), 1024);
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
  const std::string on_gpu[] = {"GPU naive",        "GPU shared memory", "GPU registers",
                                "GPU tensor cores", "GPU staged",        "cuBLASLt",
                                "brrr on the GPU"};
  for (const std::string& name : on_gpu) {
    const auto rung = std::find_if(ladder["rungs"].begin(), ladder["rungs"].end(),
                                   [&](const json& each) { return each["name"] == name; });
    ASSERT_NE(rung, ladder["rungs"].end()) << name;
    EXPECT_NE(rung->contains("flops_per_second"), rung->contains("missing")) << "one of them";
  }
  EXPECT_GT(ladder["flops_in_the_time_of_the_first"].get<double>(), 1);
  for (const json& rung : ladder["rungs"]) {
    EXPECT_FALSE(rung["hardware"].get<std::string>().empty());
    if (rung.contains("share_of_peak")) {
      EXPECT_LE(rung["share_of_peak"].get<double>(), 1) << rung["name"];
    }
  }
  double shares = 0;
  for (const auto& [cause, share] : ladder["shares"].items()) shares += share.get<double>();
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_TRUE(std::filesystem::exists(svg));
}

}  // namespace
}  // namespace brrr
