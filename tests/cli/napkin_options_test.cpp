// Options of `brrr napkin`: what is given counts, or is refused with the rule; nothing is dropped in silence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "brrr/base/error.h"
#include "support/run_program.h"

namespace brrr {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(NapkinOptions, AreRefusedWithTheRuleWhereTheyCannotBe) {
  const std::string model = "train --tokens 1e12 --gpu h100 --model llama3-8b ",
                    bare = "train --tokens 1e12 --gpu h100 --params 70e9 --mfu 0.5 ",
                    mfu = "mfu --gpu h100 --model llama3-8b ",
                    infer = "infer --gpu h100 --model llama3-8b ";
  const std::pair<std::string, const char*> rows[] = {
      // Sizes beyond what is counted exactly.
      {model + "--hidden 100000000 --layers 10000", "parameters is beyond reason"},
      {model + "--hidden 100000000 --layers 100", "parameters is beyond reason"},
      {model + "--ffn 9000000000000", "--ffn 9000000000000 makes no sense"},
      {model + "--kv-heads 0", "--kv-heads 0"},
      {model + "--seq 100000000", "counted exactly up to"},
      {model + "--micro-batch 1000000000", "use 1e+09 at most"},
      {model + "--micro-batch 9000000000000000000", "use 1e+09 at most"},
      {model + "--tp 4294967296 --pp 4294967296", "devices are more than the 1 there are"},
      {model + "--count 1000000000", "use 1 to 10000000"},
      {model + "--node-size 100000000", "a node of 100000000 devices"},
      {model + "--mfu 1e-300", "--mfu 1e-300 makes no sense; use 1e-06 or more"},
      {model + "--goodput 1e-9", "--goodput 1e-09 makes no sense"},
      {model + "--price 1e30", "--price 1e+30 makes no sense; use 1e+06 at most"},
      {model + "--watts 1e9", "--watts 1e+09 makes no sense"},
      {"op attention 1 1 1000000000 64 --gpu h100", "use 7e18 at most"},
      {infer + "--batch 1000000 --context 100000", "use 1e+09 at most"},
      {"budget --gpu h100 --days 1 --tokens-per-param inf", "inf tokens a parameter"},
      {"budget --gpu h100 --days 1 --count 0", "0 devices make no sense"},
      {"lint --model gpt2-124m --gpu h100 --tokens 0", "--tokens"},
      {"lint --model gpt2-124m --gpu h100 --tp 0", "--tp"},
      {"verify --model gpt2-tiny --rows -1", "--rows"},
      {"verify --model gpt2-tiny --memory-budget -5", "--memory-budget"},
      // Options that another one takes the effect from.
      {model + "--family gpt3", "--family gpt3"},
      {model + "--top-k 2", "no experts"},
      {model + "--interleave 2", "give --pp as well"},
      {model + "--no-sequence-parallel", "give --tp as well"},
      {model + "--watts 0", "more than 0 W"},
      {model + "--precision f32 --grads bf16", "gradients are f32"},
      {model + "--optimizer adamw-bf16 --grads f32", "keeps all in bf16"},
      {model + "--mfu 0.4 --framework eager", "--framework would change nothing"},
      {model + "--mfu 0.4 --rates none.json", "--rates would change nothing"},
      {model + "--mfu 0.4 --attention flash2", "--attention flash2 would change nothing"},
      {model + "--attention triton --rates none.json", "another rate than that of --rates"},
      {"train --tokens 1.5 --gpu h100 --model llama3-8b", "--tokens 1.5 is no whole number"},
      {"train --tokens 1e12 --gpu h100 --params 1.5 --mfu 0.5", "no whole number"},
      {bare + "--convention palm", "nothing is known but 6 N"},
      {bare + "--convention exact", "nothing is known but 6 N"},
      {bare + "--recompute selective", "--recompute selective"},
      {bare + "--unfused", "--unfused would change nothing"},
      {bare + "--network 50", "--network would change nothing"},
      {bare + "--layers 3", "exclude each other"},
      {mfu + "--tokens-per-second 100 --seq 0", "--seq"},
      {mfu + "--tokens-per-second 100 --seq -5", "--seq"},
      {mfu + "--tokens-per-second 100 --mfu 0.5 --from palm", "give one of"},
      {mfu + "--tokens-per-second 100 --from palm", "--mfu and --from go together"},
      {mfu + "--mfu 0.5", "--mfu and --from go together"},
      {mfu, "give one of"},
      {mfu + "--tokens-per-second nan", "is no speed"},
      {mfu + "--tokens-per-second 100 --recompute budget", "use none, selective or full"},
      {"mfu --gpu h100 --model gpt2-124m --tokens-per-second 9 --seq 2048", "1024 positions"},
      {"op gelu 1e8 --gpu h100 --count 8", "--count"},
      {"op adamw 1e8 --gpu h100 --dtype bf16", "adamw's states are f32"},
      {"lint --model gpt2-124m --gpu h100 --count 8", "--count"},
      {"verify --model cnn --seq 128", "--seq is not taken"},
      {"verify --model cnn --layers 3", "neither layers"},
      {"verify --model lstm-tiny --heads 3", "no heads to change"}};
  for (const auto& [arguments, rule] : rows) {
    const Outcome result = run("napkin " + arguments);
    EXPECT_EQ(result.status, 2) << arguments << "\n" << result.output;
    EXPECT_THAT(result.output, HasSubstr(rule)) << arguments;
  }
}

TEST(NapkinOptions, ThatChangeNothingAreNamed) {
  const std::string model = "train --tokens 1e12 --gpu h100 --model gpt2-124m ";
  const std::pair<std::string, const char*> rows[] = {
      {model + "--zero 3", "ZeRO 3 changes nothing here"},
      {model + "--count 8 --network 50", "--network changes nothing here"},
      {model + "--node-size 4", "--node-size changes nothing here"},
      {"train --tokens 1e9 --gpu tpu-v5p --model gpt2-124m --pue 1.2", "--pue changes nothing"},
      {model + "--peak 900", "--peak changes what MFU and HFU are shares of"},
      {"train --tokens 1e9 --gpu h100 --model lstm-tiny --attention flash2",
       "--attention changes nothing here"},
      {"infer --gpu h100 --model llama3-8b --count 3", "no prediction: tensor parallelism"},
      {"infer --gpu h100 --model qwen2.5-0.5b --whole-table", "--whole-table changes nothing"},
      {"op adamw 1e8 --gpu h100", "adamw in f32"}};
  for (const auto& [arguments, note] : rows) {
    const Outcome result = run("napkin " + arguments);
    EXPECT_EQ(result.status, 0) << arguments << "\n" << result.output;
    EXPECT_THAT(result.output, HasSubstr(note)) << arguments;
  }
  EXPECT_THAT(run("napkin " + model + "--count 8 --zero 1").output,
              testing::Not(HasSubstr("changes nothing")));
}

// What stays allowed: values that say what is so anyway.
TEST(NapkinOptions, MaySayWhatIsSo) {
  for (const char* arguments :
       {"train --tokens 1e12 --gpu h100 --params 70e9 --mfu 0.5 --convention 6n --recompute full",
        "train --tokens 1e12 --gpu h100 --model gpt2-124m --family gpt2 --tied --interleave 1",
        "train --tokens 1e12 --gpu h100 --model gpt2-124m --precision f32 --grads f32",
        "mfu --gpu h100 --model llama3-8b --mfu 0.5 --from palm --recompute full"}) {
    const Outcome result = run(join_text("napkin ", arguments));
    EXPECT_EQ(result.status, 0) << arguments << "\n" << result.output;
  }
}

}  // namespace
}  // namespace brrr
