// Settings by file and by flag: every one goes round, and what is wrong is told with the way out.
#include "brrr/run/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "brrr/train/auto_size.h"
#include "support/error_of.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_in(const std::string& toml) {
  return error_of([&] { runs::parse_config(toml, "run.toml"); });
}

TEST(Config, EverySettingGoesRound) {
  runs::TrainConfig config;
  config.data.files = {"a b.txt", "quo\"te.txt"};
  config.data.weights = {0.7, 3};
  config.data.separator = "<|endoftext|>";
  config.model.layers = 3;
  config.optimizer.lr = 0.1 + 0.2;  // all digits
  config.optimizer.schedule = ScheduleShape::warmup_stable_decay;
  config.train.precision = compiler::Precision::bf16_mixed;
  config.guard.action = runs::GuardAction::stop;
  config.seed.init = INT64_MAX;
  const runs::TrainConfig back = runs::parse_config(runs::to_toml(config), "written");
  EXPECT_EQ(back.data.files, config.data.files);
  for (const runs::SettingInfo& setting : runs::config_settings())
    EXPECT_EQ(runs::get_setting(back, setting.key), runs::get_setting(config, setting.key))
        << setting.key;
  EXPECT_EQ(back.optimizer.lr, config.optimizer.lr);
}

TEST(Config, OpenSettingsStayOpen) {
  const runs::TrainConfig back = runs::parse_config(runs::to_toml({}), "written");
  EXPECT_FALSE(back.train.steps.has_value());
  EXPECT_FALSE(back.optimizer.lr.has_value());
  runs::TrainConfig config;
  runs::set_setting(config, "train.steps", "10");
  runs::set_setting(config, "train.steps", "auto");
  EXPECT_FALSE(config.train.steps.has_value());
}

TEST(Config, UnknownKeysGetTheNearestKnownOne) {
  EXPECT_THAT(
      error_in("[optimizer]\nlearning_rte = 1\n"),
      AllOf(HasSubstr("run.toml, line 2"), HasSubstr("no setting \"optimizer.learning_rte\"")));
  EXPECT_THAT(error_in("[optimizer]\nwarmpu = 1\n"), HasSubstr("did you mean optimizer.warmup?"));
  EXPECT_THAT(error_in("[train]\nbtach = 1\n"), HasSubstr("did you mean train.batch?"));
  EXPECT_THAT(error_in("[train]\nlr = 1\n"), HasSubstr("did you mean optimizer.lr?"));
  EXPECT_THAT(error_in("stesp = 1\n"), HasSubstr("did you mean train.steps?"));
  EXPECT_THAT(error_in("[train]\nqqqqqqqqqq = 1\n"), HasSubstr("`brrr train --help` has the list"));
}

TEST(Config, ValuesThatDoNotFitAreNamed) {
  EXPECT_THAT(error_in("[train]\nsteps = \"many\"\n"),
              HasSubstr("train.steps = many: a whole number is needed"));
  EXPECT_THAT(error_in("[train]\nsteps = 1.5\n"), HasSubstr("a whole number is needed"));
  EXPECT_THAT(error_in("[guard]\naction = \"panic\"\n"), HasSubstr("use warn, skip or stop"));
  EXPECT_THAT(error_in("[seed]\nall = -1\n"), HasSubstr("a whole number from 0 on"));
  runs::TrainConfig config;
  EXPECT_THAT(error_of([&] { runs::set_setting(config, "seed.all", "18446744073709551615"); }),
              HasSubstr("at most 9223372036854775807"));
  EXPECT_THAT(error_in("[optimizer]\nschedule = \"cosin\"\n"), HasSubstr("cosine"));
  EXPECT_THAT(error_in("[data]\nvocab = [1]\n"), HasSubstr("data.vocab"));
  EXPECT_THAT(error_in("[train\nsteps = 1\n"), HasSubstr("run.toml, line 1"));
  EXPECT_THAT(error_of([] { runs::read_config("nowhere.toml"); }), HasSubstr("nowhere.toml"));
}

TEST(Config, ChecksWhatASettingMayBe) {
  const auto error_with = [](const char* key, const char* value) {
    runs::TrainConfig config;
    runs::set_setting(config, key, value);
    return error_of([&] { runs::check_config(config); });
  };
  EXPECT_THAT(error_with("train.batch", "0"), HasSubstr("train.batch = 0: at least 1"));
  EXPECT_THAT(error_with("model.dropout", "1"), HasSubstr("below 1"));
  EXPECT_THAT(error_with("optimizer.lr", "-1"), HasSubstr("a positive rate"));
  EXPECT_THAT(error_with("data.validation", "1.5"), HasSubstr("data.validation = 1.5"));
  EXPECT_THAT(error_with("optimizer.clip", "-1"), HasSubstr("0 for none"));
  for (const char* lr : {"inf", "nan", "0"})
    EXPECT_THAT(error_with("optimizer.lr", lr), HasSubstr("a positive rate")) << lr;
  for (const char* key : {"optimizer.weight_decay", "optimizer.eps"}) {
    for (const char* value : {"-1", "nan", "inf"})
      EXPECT_THAT(error_with(key, value), HasSubstr("0 or more")) << key << value;
  }
  for (const char* minutes : {"0", "-3", "nan", "inf"})
    EXPECT_THAT(error_with("train.minutes", minutes), HasSubstr("a positive number")) << minutes;
  EXPECT_THAT(error_with("report.sample_tokens", "0"), HasSubstr("at least 1"));
  EXPECT_THAT(error_with("report.sample_every", "-1"), HasSubstr("0 or more"));
  EXPECT_THAT(error_with("report.activations_every", "-1"), HasSubstr("0 or more"));
  EXPECT_THAT(error_with("data.vocab", "-3"), HasSubstr("at least 1"));
  EXPECT_THAT(error_with("model.layers", "99999999"), HasSubstr("at most 10000"));
  EXPECT_THAT(error_with("train.accumulate", "99999999"), HasSubstr("at most 65536"));
}

// What a run wrote before families had a registry.
TEST(Config, SavedRunsAreRead) {
  const std::filesystem::path folder =
      std::filesystem::path(BRRR_SOURCE_DIR) / "tests/fixtures/saved_run";
  const runs::TrainConfig config = runs::read_config(folder / "config.toml");
  EXPECT_EQ(config.model.family, "llama");
  EXPECT_EQ(config.model.layers, 1);
  EXPECT_EQ(config.model.heads, 2);
  EXPECT_EQ(config.model.width, 16);
  EXPECT_EQ(config.model.context, 16);
  const training::ResolvedRun run =
      training::resolve_sizes(config, {.train_tokens = 4560, .vocab = 257, .documents = 1},
                              {.cores = 2, .memory = 8_GiB, .peak_flops = FlopsPerSecond(2e11)});
  std::ifstream file(folder / "model.json");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(run.model, model_from_json(text.str()));
  EXPECT_EQ(to_json(run.model) + "\n", text.str());
}

TEST(Config, FlagsAreAllDifferent) {
  std::set<std::string_view> keys, flags;
  for (const runs::SettingInfo& setting : runs::config_settings()) {
    EXPECT_TRUE(keys.insert(setting.key).second) << setting.key;
    if (!setting.flag.empty()) {
      EXPECT_TRUE(flags.insert(setting.flag).second) << setting.flag;
    }
  }
}

}  // namespace
}  // namespace brrr
