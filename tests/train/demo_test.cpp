// What `brrr train` promises and takes minutes to keep: without options it writes stories, and new ones; with
// nanoGPT's settings it reaches nanoGPT's loss. These run where they are asked for: BRRR_DEMO=1 trains, and
// BRRR_DEMO_RUN names the folder of a run of the stories that is there already.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <unordered_set>

#include "brrr/infer/load_model.h"
#include "brrr/train/sampler.h"
#include "support/run_program.h"
#include "support/shared_data.h"
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
  const runs::RunLog log = runs::read_run_log(run_folder);
  EXPECT_LT(log.facts.seconds, kMostTrainingSeconds);

  const infer::LoadedModel loaded = infer::load_model(run_folder);
  training::Sampler sampler(*loaded.model, loaded.tokenizer,
                            {.temperature = runs::TrainConfig{}.report.temperature, .seed = 1});
  std::unordered_set<std::string> training_set;
  const auto stories = runs::TrainConfig{}.data.stories;
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

// The README of nanoGPT reports 1.88 for these settings of a CPU: 4 layers, 4 heads, width 128, context 64, batch
// 12, 2000 steps, no dropout; config/train_shakespeare_char.py has the rest (lr 1e-3 to 1e-4 by cosine behind 100
// steps of warmup, beta2 0.99, decay 0.1, clip 1; the last tenth of the text is held out). 100 batches predict the
// held out text to about 0.01.
TEST(Demo, ShakespeareReachesTheLossOfNanoGpt) {
  if (!std::getenv("BRRR_DEMO")) GTEST_SKIP() << "trains for minutes; set BRRR_DEMO=1";
  const auto text = shared_data("text/tinyshakespeare.txt");
  if (!text) GTEST_SKIP() << "no text/tinyshakespeare.txt";
  const TempFolder folder;
  const std::string run_folder = (folder / "shakespeare").string();
  const Outcome trained =
      run(join_text("train ", *text,
                    " --tokenizer char --validation 0.1 --layers 4 --heads 4 --width 128 "
                    "--context 64 --batch 12 --steps 2000 --lr 1e-3 --final-share 0.1 --warmup 100 "
                    "--eval-every 500 --eval-batches 100 --sample-every 0 --out ",
                    run_folder));
  ASSERT_EQ(trained.status, 0) << trained.output;
  const double loss = runs::read_run_log(run_folder).steps.back().validation_loss.value_or(0);
  std::printf("validation loss %.4f nats a character\n", loss);
  EXPECT_NEAR(loss, 1.88, 0.03);
}

}  // namespace
}  // namespace brrr
