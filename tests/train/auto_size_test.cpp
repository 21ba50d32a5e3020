// Sizes follow from the data and the machine, and the run says which and why.
#include "brrr/train/auto_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/train/memory_fit.h"
#include "brrr/train/plan.h"
#include "brrr/train/tokenizer_choice.h"
#include "support/error_of.h"
#include "support/thread_count.h"

namespace brrr {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

constexpr training::MachineFacts kTwoCores{
    .cores = 2, .memory = 8_GiB, .peak_flops = FlopsPerSecond(2e11)};

training::ResolvedRun resolve(int64_t tokens, const runs::TrainConfig& config = {},
                              const training::MachineFacts& machine = kTwoCores) {
  return training::resolve_sizes(config, {.train_tokens = tokens, .vocab = 100, .documents = 1},
                                 machine);
}

const hardware::Rates kRates = hardware::rates_from_peaks(
    "a test", {.flops_per_second = 1e10, .bytes_per_second = 1e10, .launch_seconds = 1e-6});

int64_t size_of(const training::ResolvedRun& run) { return parameter_count(run.model); }

TEST(AutoSize, GrowsWithTheTextTheTimeAndTheMachine) {
  EXPECT_LT(size_of(resolve(20'000)), size_of(resolve(1'000'000)));
  runs::TrainConfig hour;
  hour.train.minutes = 60;
  EXPECT_LT(size_of(resolve(50'000'000)), size_of(resolve(50'000'000, hour)));
  training::MachineFacts large = kTwoCores;
  large.peak_flops = FlopsPerSecond(2e13);
  EXPECT_LT(size_of(resolve(50'000'000)), size_of(resolve(50'000'000, {}, large)));
}

TEST(AutoSize, LittleMemoryGetsAModelThatFitsIntoIt) {
  const ThreadCount two(2);
  runs::TrainConfig day;
  day.train.minutes = 24 * 60;
  training::MachineFacts small = kTwoCores;
  small.memory = 400_MiB;
  const training::ResolvedRun run = resolve(50'000'000, day, small);
  EXPECT_LT(size_of(run), size_of(resolve(50'000'000, day)));
  EXPECT_THAT(run.reasons, Contains(HasSubstr("fits into 400 MiB")));
  EXPECT_LE(
      training::plan_training(run.config, run.model, compiler::cpu_target(), kRates, {}).memory(),
      small.memory);
}

TEST(AutoSize, SaysWhatItChoseAndWhy) {
  const training::ResolvedRun run = resolve(1'000'000);
  EXPECT_THAT(run.reasons,
              Contains(AllOf(HasSubstr("layers of width"), HasSubstr("1,000,000 tokens"))));
  EXPECT_THAT(run.reasons, Contains(HasSubstr("steps: about 5 minutes here")));
  EXPECT_THAT(run.reasons, Contains(HasSubstr("context 128")));
  for (const runs::SettingInfo& setting :
       {runs::SettingInfo{"train.steps"}, runs::SettingInfo{"train.batch"},
        runs::SettingInfo{"optimizer.lr"}, runs::SettingInfo{"checkpoint.every"}})
    EXPECT_NE(runs::get_setting(run.config, setting.key), "") << setting.key;
}

TEST(AutoSize, KeepsWhatIsGiven) {
  runs::TrainConfig config;
  config.model = {.layers = 3, .heads = 5, .width = 40, .context = 24};
  config.train.steps = 77;
  config.optimizer.lr = 0.5;
  const training::ResolvedRun run = resolve(1'000'000, config);
  EXPECT_EQ(run.model.get<Gpt2Config>(),
            (Gpt2Config{.vocab = 100, .context = 24, .layers = 3, .heads = 5, .width = 40}));
  EXPECT_EQ(run.config.train.steps, 77);
  EXPECT_EQ(run.config.optimizer.lr, 0.5);
}

TEST(AutoSize, TakesPresetsAndFamilies) {
  runs::TrainConfig preset;
  preset.model.preset = "gpt2-124m";
  EXPECT_EQ(resolve(10'000'000, preset).model.get<Gpt2Config>().width, 768);
  runs::TrainConfig llama;
  llama.model.family = "llama";
  EXPECT_EQ(family_of(resolve(1'000'000, llama).model), "llama");
  for (const char* family : {"qwen3", "gemma2", "recurrent"}) {
    runs::TrainConfig of_family;
    of_family.model.family = family;
    const training::ResolvedRun made = resolve(1'000'000, of_family);
    EXPECT_EQ(family_of(made.model), family);
    EXPECT_EQ(vocab_of(made.model), 100);
  }
  runs::TrainConfig qwen3;
  qwen3.model.preset = "qwen3-0.6b";
  const ModelConfig of_preset = resolve(1'000'000, qwen3).model;
  EXPECT_EQ(of_preset.size("head_dim"), 128);
  EXPECT_EQ(of_preset.size("layers"), 28);
  llama.model.family = "lama";
  EXPECT_THAT(error_of([&] { resolve(1'000'000, llama); }),
              HasSubstr("use gpt2, llama, qwen3, gemma2 or recurrent"));
}

TEST(AutoSize, AShortTextGetsShortRows) {
  EXPECT_LE(*resolve(200).config.model.context, 12);
  runs::TrainConfig config;
  config.model.context = 300;
  EXPECT_THAT(error_of([&] { resolve(200, config); }),
              AllOf(HasSubstr("200 tokens"), HasSubstr("a smaller --context")));
}

TEST(AutoSize, RowsOfStoriesHoldWholeOnes) {
  const training::ResolvedRun run = training::resolve_sizes({},
                                                            {.train_tokens = 3'000'000,
                                                             .vocab = 700,
                                                             .documents = 30'000,
                                                             .longest_document = 107,
                                                             .is_stories = true},
                                                            kTwoCores);
  EXPECT_EQ(*run.config.model.context, 112);
  EXPECT_TRUE(*run.config.data.whole_documents);
}

TEST(AutoSize, TokenizersSuitTheAmountOfText) {
  EXPECT_EQ(training::choose_tokenizer(100_KiB).kind, "char");
  EXPECT_EQ(training::choose_tokenizer(3_MiB).kind, "bpe");
  EXPECT_EQ(training::choose_tokenizer(3_MiB).vocab, 1024);
  EXPECT_EQ(training::choose_tokenizer(20_MiB).vocab, 8192);
  EXPECT_EQ(training::choose_tokenizer(2_GiB).vocab, 32768);
}

// ---- plans ---------------------------------------------------------------------------------------

training::ResolvedRun gpt2(int64_t batch) {
  runs::TrainConfig config;
  config.model.preset = "gpt2-124m";
  config.model.context = 64;
  config.train.batch = batch;
  config.train.steps = 10;
  return resolve(1'000'000, config);
}

TEST(TrainPlan, CountsStatesAndCheckpointsExactly) {
  const training::ResolvedRun run = gpt2(2);
  const training::TrainPlan plan =
      training::plan_training(run.config, run.model, compiler::cpu_target(), kRates, 1_MiB);
  EXPECT_EQ(plan.parameters, parameter_count(run.model));
  // f32 weights, two moments, and the count of steps.
  EXPECT_EQ(plan.states, Bytes(12 * plan.parameters + 8));
  EXPECT_EQ(plan.checkpoint, Bytes(12 * plan.parameters + 8));
  EXPECT_GT(plan.step_seconds, 0);
  EXPECT_GT(plan.disk, plan.checkpoint * 4);
}

// 6 FLOPs a weight that multiplies and token, and the causal pairs of attention: 6 L h (T + 1).
TEST(TrainPlan, CountsTheFlopsOfTheModel) {
  runs::TrainConfig config;
  config.model = {.layers = 2, .heads = 4, .width = 64, .context = 32};
  config.train.batch = 3, config.train.steps = 1;
  const training::ResolvedRun run = resolve(1'000'000, config);
  const training::TrainPlan plan =
      training::plan_training(run.config, run.model, compiler::cpu_target(), kRates, {});
  const double weights = 12.0 * 2 * 64 * 64 + 100 * 64;
  const double products = 6 * weights + 6.0 * 2 * 64 * (32 + 1);
  EXPECT_GE(plan.model_flops_per_token.value(), products);
  EXPECT_LT(plan.model_flops_per_token.value(), 1.01 * products) << "the softmax of attention";
}

// The flags behind a word of a message: "--batch 4" of "..., --batch 4 --accumulate 8 needs".
int64_t flag_in(const std::string& message, const std::string& flag) {
  const size_t at = message.rfind(flag + " ");
  return at == std::string::npos ? -1 : std::stoll(message.substr(at + flag.size() + 1));
}

TEST(TrainPlan, RefusesWhatDoesNotFitWithSettingsThatDo) {
  const ThreadCount two(2);  // scratch grows with threads, and so does what fits
  const training::ResolvedRun run = gpt2(32);
  const training::TrainPlan plan =
      training::plan_training(run.config, run.model, compiler::cpu_target(), kRates, {});
  const auto lack = [&](Bytes memory, Bytes disk) {
    return training::lack_of_room(run.config, run.model, plan, {memory, disk});
  };
  EXPECT_EQ(lack(plan.memory(), plan.disk), "");
  EXPECT_THAT(lack(1_GiB, plan.disk), HasSubstr("of memory"));
  EXPECT_THAT(lack(plan.memory() - plan.arena / 4, plan.disk),
              AllOf(HasSubstr("of memory"), HasSubstr("this fits"),
                    HasSubstr("--batch 32 --accumulate 1 --recompute full")));
  EXPECT_THAT(lack(1_MiB, plan.disk), HasSubstr("not even one layer fits"));
}

TEST(TrainPlan, SmallerModelsThatAreOfferedFit) {
  const ThreadCount two(2);
  const training::ResolvedRun run = gpt2(6);
  const training::TrainPlan plan =
      training::plan_training(run.config, run.model, compiler::cpu_target(), kRates, {});
  const Bytes memory = 1_GiB;
  const std::string lack = training::lack_of_room(run.config, run.model, plan, {memory, plan.disk});
  ASSERT_THAT(lack, AllOf(HasSubstr("choose a smaller model"), HasSubstr("--accumulate 6")));
  training::ResolvedRun smaller = run;
  smaller.config.model.layers = smaller.model.get<Gpt2Config>().layers = flag_in(lack, "--layers");
  smaller.config.train.batch = flag_in(lack, "--batch");
  smaller.config.train.accumulate = flag_in(lack, "--accumulate");
  smaller.config.train.recompute = compiler::RematPolicy::full;
  const auto needed = [&] {
    return training::plan_training(smaller.config, smaller.model, compiler::cpu_target(), kRates,
                                   {})
        .memory();
  };
  EXPECT_LE(needed(), memory);
  smaller.model.get<Gpt2Config>().layers += 1;
  EXPECT_GT(needed(), memory) << "the largest that fits is offered";
}

TEST(TrainPlan, FewerCheckpointsAreOfferedWhereTheyFit) {
  training::ResolvedRun run = gpt2(1);
  run.config.checkpoint.keep = 5;
  const training::TrainPlan plan =
      training::plan_training(run.config, run.model, compiler::cpu_target(), kRates, 10_MiB);
  const auto lack = [&](Bytes disk) {
    return training::lack_of_room(run.config, run.model, plan, {plan.memory(), disk});
  };
  EXPECT_THAT(lack(plan.disk - plan.checkpoint - 1_MiB),
              AllOf(HasSubstr("on disk"), HasSubstr("this fits: --keep 3")));
  EXPECT_THAT(lack(plan.checkpoint), HasSubstr("even --keep 1 needs"));
}

}  // namespace
}  // namespace brrr
