// The promise of `brrr train` without options: the stories that the model writes are stories, and new ones.
// Training takes minutes, so this runs where it is asked for: BRRR_DEMO=1 trains as `make demo` does, and
// BRRR_DEMO_RUN names the folder of a run that is there already.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <unordered_set>

#include "brrr/infer/load_model.h"
#include "brrr/train/sampler.h"
#include "support/run_program.h"
#include "train/small_run.h"

namespace brrr {
namespace {

constexpr int kSamples = 100;
constexpr double kMostTrainingSeconds = 180;

TEST(Demo, WritesStoriesThatParseAndAreNew) {
  const char* given = std::getenv("BRRR_DEMO_RUN");
  if (!given && !std::getenv("BRRR_DEMO"))
    GTEST_SKIP() << "trains for minutes; set BRRR_DEMO=1, or BRRR_DEMO_RUN to the folder of a run";
  const TempFolder folder;
  const std::filesystem::path run_folder = given ? given : folder / "stories";
  if (!given) {
    const Outcome trained = run("train --out " + run_folder.string());
    ASSERT_EQ(trained.status, 0) << trained.output;
  }
  const RunLog log = read_run_log(run_folder);
  EXPECT_LT(log.facts.seconds, kMostTrainingSeconds);

  const LoadedModel loaded = load_model(run_folder);
  Sampler sampler(*loaded.model, loaded.tokenizer,
                  {.temperature = TrainConfig{}.report.temperature, .seed = 1});
  std::unordered_set<std::string> training_set;
  const auto stories = TrainConfig{}.data.stories;
  for (int64_t i = 0; i < stories; ++i) training_set.insert(story(i));
  int parsed = 0, known = 0;
  for (int i = 0; i < kSamples; ++i) {
    const std::string text = sampler.write(static_cast<uint32_t>(i), loaded.model->context());
    const StoryVerdict verdict = parse_story(text);
    parsed += verdict ? 1 : 0;
    known += training_set.contains(text) ? 1 : 0;
    if (!verdict)
      std::printf("%s\n  at %zu: %s\n", text.c_str(), verdict.position, verdict.reason.c_str());
  }
  std::printf("%d of %d stories parse, %d stand in the training set; %.0f s of training\n", parsed,
              kSamples, known, log.facts.seconds);
  EXPECT_GE(parsed, 9 * kSamples / 10);
  EXPECT_LT(known, kSamples / 10);
}

}  // namespace
}  // namespace brrr
