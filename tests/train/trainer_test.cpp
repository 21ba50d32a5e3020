// A run that is interrupted and goes on is the run that was not, bit for bit; seeds change what they name.
#include "brrr/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cmath>
#include <fstream>

#include "brrr/base/thread_pool.h"
#include "brrr/train/run_batches.h"
#include "brrr/train/setup.h"
#include "brrr/train/state.h"
#include "support/error_of.h"
#include "train/small_run.h"

namespace brrr {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

TEST(Trainer, LearnsAndLeavesEverythingBehind) {
  SmallRun run;
  run.config.train.steps = 40;
  run.config.report.sample_every = 20;
  const training::TrainOutcome outcome = run.train("a");
  EXPECT_EQ(outcome.status, "finished");
  const runs::RunLog log = runs::read_run_log(run.folder("a"));
  ASSERT_EQ(log.steps.size(), 40U);
  EXPECT_LT(log.steps.back().loss, log.steps.front().loss - 0.5);
  EXPECT_GT(log.steps[0].tokens_per_second, 0);
  EXPECT_GT(log.steps[0].grad_norm, 0);
  EXPECT_TRUE(log.steps[0].activations.contains("h.0"));
  EXPECT_TRUE(log.steps[4].validation_loss.has_value());
  EXPECT_TRUE(log.steps[4].train_loss.has_value());
  EXPECT_NE(log.steps[19].sample, "");
  EXPECT_EQ(log.facts.status, "finished");
  EXPECT_GT(log.facts.best_step, 0);
  EXPECT_EQ(log.facts.peak_bandwidth, 1e10) << "of the rates that it was planned by";
  for (const char* file : {"config.toml", "tokenizer.json", "run.json", "checkpoints/best"})
    EXPECT_TRUE(fs::exists(run.folder("a") / file)) << file;
}

// At one thread, at two, and with another number behind the interruption than before it.
TEST(Trainer, GoesOnBitForBitAtAnyNumberOfThreads) {
  SmallRun run;
  run.config.optimizer.average = 0.9;
  set_num_threads(1);
  const training::TrainOutcome whole = run.train("whole");
  for (const int threads : {1, 2}) {
    const std::string name = join_text("cut", threads);
    const training::TrainOutcome cut = run.train_until(name, 7);
    EXPECT_EQ(cut.step, 7);
    EXPECT_EQ(cut.status, "stopped");
    set_num_threads(threads);
    const training::TrainOutcome rest = run.train(name, {.resume = true});
    EXPECT_EQ(rest.step, 12);
    EXPECT_EQ(run.losses(name), run.losses("whole")) << threads << " threads";
    EXPECT_EQ(weights_of(rest.checkpoint), weights_of(whole.checkpoint)) << threads << " threads";
  }
  set_num_threads(available_cores());
}

// As a GPU is: steps are started before the results of the last ones are seen.
TEST(Trainer, StepsStartedAheadChangeNothing) {
  const SmallRun run;
  const training::TrainOutcome alone = run.train("alone");
  const training::TrainOutcome ahead = run.train("ahead", {.steps_ahead = 2});
  EXPECT_EQ(run.losses("ahead"), run.losses("alone"));
  EXPECT_EQ(weights_of(ahead.checkpoint), weights_of(alone.checkpoint));
  // A signal ends it behind the steps that are under way, and it goes on from there.
  const training::TrainOutcome stopped = run.train_until("resumed", 6, {.steps_ahead = 2});
  EXPECT_EQ(stopped.status, "stopped");
  const training::TrainOutcome resumed = run.train("resumed", {.resume = true, .steps_ahead = 2});
  EXPECT_EQ(run.losses("resumed"), run.losses("alone"));
  EXPECT_EQ(weights_of(resumed.checkpoint), weights_of(alone.checkpoint));
}

TEST(Trainer, AccumulatesOverMicroBatches) {
  SmallRun run;
  run.config.model.dropout = 0;
  run.train("one");
  run.config.train.batch = 2;
  run.config.train.accumulate = 2;
  run.train("two");
  const std::vector<double> one = run.losses("one"), two = run.losses("two");
  // The same rows; sums in another order.
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], two[i], 2e-4 * one[i]) << i;
  EXPECT_EQ(one.size(), 12U);
}

// One loss scale and one set of histories a step, and parts in f32 inside the micro-batches.
TEST(Trainer, AccumulatesInEveryPrecision) {
  for (const compiler::Precision precision :
       {compiler::Precision::bf16_mixed, compiler::Precision::f16_mixed,
        compiler::Precision::fp8_mixed}) {
    for (const bool some_in_f32 : {false, true}) {
      SmallRun run;
      run.config.model.dropout = 0;
      run.config.train.steps = 6;
      run.config.train.precision = precision;
      if (some_in_f32) run.config.train.precision_of = {"h.*.attn=f32"};
      run.train("one");
      run.config.train.batch = 1;
      run.config.train.accumulate = 4;
      run.train("four");
      const std::vector<double> one = run.losses("one"), four = run.losses("four");
      ASSERT_EQ(four.size(), one.size());
      for (size_t i = 0; i < one.size(); ++i)
        EXPECT_NEAR(one[i], four[i], 5e-3 * one[i])
            << compiler::precision_name(precision) << ", step " << i;
    }
  }
}

TEST(Trainer, GoesOnWithAccumulationAndDropout) {
  SmallRun run;
  run.config.train.accumulate = 3;
  const training::TrainOutcome whole = run.train("whole");
  run.train_until("cut", 5);
  const training::TrainOutcome rest = run.train("cut", {.resume = true});
  EXPECT_EQ(run.losses("cut"), run.losses("whole"));
  EXPECT_EQ(weights_of(rest.checkpoint), weights_of(whole.checkpoint));
}

// Settings of the compiler reach the step that is trained.
TEST(Trainer, ProductsPartsAndMemoryAreSettings) {
  SmallRun run;
  run.config.model.layers = 2;
  run.config.train.steps = 3;
  run.train("plain");
  run.config.train.matmul_precision = compiler::MatmulPrecision::tf32;
  run.train("tf32");
  EXPECT_NE(run.losses("tf32"), run.losses("plain"));
  run.config.train.matmul_precision = compiler::MatmulPrecision::ieee;
  run.train("ieee");
  EXPECT_EQ(run.losses("ieee"), run.losses("plain")) << "what the cpu does by itself";
  run.config.train.precision = compiler::Precision::bf16_mixed;
  run.train("bf16");
  run.config.train.precision_of = {"h.*=f32"};
  run.train("blocks in f32");
  EXPECT_NE(run.losses("blocks in f32"), run.losses("bf16"));
  run.config.train.precision_of = {"nowhere=f32"};
  EXPECT_THROW(run.train("no such part"), Error);
  run.config.train.precision_of.clear();
  run.config.train.recompute = compiler::RematPolicy::budget;
  run.config.train.memory_budget_mib = 100;
  run.train("roomy");
  EXPECT_EQ(run.losses("roomy"), run.losses("bf16"));
  run.config.train.recompute = compiler::RematPolicy::selective;
  EXPECT_THAT([&] { runs::check_config(run.config); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("is for --recompute budget")));
}

TEST(Trainer, RunsLayersAgainInsideMicroBatches) {
  SmallRun run;
  run.config.model.layers = 2;
  run.config.train.steps = 4;
  run.config.train.accumulate = 2;
  const auto train = [&](compiler::RematPolicy policy) {
    run.config.train.recompute = policy;
    const std::string name(compiler::policy_name(policy));
    run.train(name);
    return std::pair(run.losses(name), runs::read_run_log(run.folder(name)).facts.predicted_memory);
  };
  const auto [kept, kept_bytes] = train(compiler::RematPolicy::none);
  const auto [again, again_bytes] = train(compiler::RematPolicy::full);
  EXPECT_EQ(kept, again);
  EXPECT_LT(again_bytes, kept_bytes);
}

// bf16 keeps nothing but copies; f16 has a loss scale and fp8 histories, which are part of a checkpoint, whether
// the step has micro-batches or not.
TEST(Trainer, GoesOnInEveryPrecision) {
  for (const compiler::Precision precision :
       {compiler::Precision::bf16_mixed, compiler::Precision::f16_mixed,
        compiler::Precision::fp8_mixed}) {
    for (const int64_t accumulate : {1, 2}) {
      SmallRun run;
      run.config.train.precision = precision;
      run.config.train.accumulate = accumulate;
      const training::TrainOutcome whole = run.train("whole");
      run.train_until("cut", 5);
      const training::TrainOutcome rest = run.train("cut", {.resume = true});
      EXPECT_EQ(run.losses("cut"), run.losses("whole")) << compiler::precision_name(precision);
      EXPECT_EQ(weights_of(rest.checkpoint), weights_of(whole.checkpoint))
          << compiler::precision_name(precision);
    }
  }
}

TEST(Trainer, PassesOverADamagedCheckpointAndSaysSo) {
  SmallRun run;
  const training::TrainOutcome whole = run.train("whole");
  run.train_until("cut", 9);
  const fs::path newest = runs::find_checkpoint(run.folder("cut")).path;
  EXPECT_EQ(newest.filename(), "step-00000009");
  fs::resize_file(newest / "model.safetensors", 100);
  std::vector<std::string> notes;
  const training::TrainOutcome rest = run.train(
      "cut", {.resume = true,
              .observer = {.on_note = [&](const std::string& text) { notes.push_back(text); }}});
  EXPECT_THAT(notes, Contains(HasSubstr("step-00000009/model.safetensors is damaged")));
  EXPECT_THAT(notes, Contains(HasSubstr("goes on after step 8")));
  EXPECT_EQ(run.losses("cut"), run.losses("whole"));
  EXPECT_EQ(weights_of(rest.checkpoint), weights_of(whole.checkpoint));
}

// ---- seeds ---------------------------------------------------------------------------------------

TEST(Seeds, ChangeOnlyWhatTheyName) {
  SmallRun run;
  run.config.train.steps = 3;
  run.config.report.sample_every = 2;
  run.config.model.dropout = 0.2;
  run.train("same"), run.train("again");
  EXPECT_EQ(run.losses("same"), run.losses("again"));
  const std::vector<double> plain = run.losses("same");
  const auto losses_with = [&](const std::string& key) {
    SmallRun other;
    other.config.train.steps = 3;
    other.config.report.sample_every = 2;
    other.config.model.dropout = 0.2;
    runs::set_setting(other.config, key, "7");
    other.train("a");
    return std::pair(other.losses("a"), runs::read_run_log(other.folder("a")).steps[1].sample);
  };
  const std::string sample = runs::read_run_log(run.folder("same")).steps[1].sample;
  EXPECT_NE(losses_with("seed.all").first, plain);
  EXPECT_NE(losses_with("seed.init").first, plain);
  EXPECT_NE(losses_with("seed.data").first, plain);
  EXPECT_NE(losses_with("seed.dropout").first, plain);
  const auto [losses, text] = losses_with("seed.sampling");
  EXPECT_EQ(losses, plain) << "samples leave training alone";
  EXPECT_NE(text, sample);
}

// What each seed moves, seen by itself: initial weights, rows of the first batch, keys of dropout.
TEST(Seeds, OfWeightsLeaveTheRowsAlone) {
  const auto parts_of = [](const std::string& key) {
    runs::TrainConfig config;
    config.model = {.context = 8, .dropout = 0.5};
    config.train.steps = 1, config.train.batch = 2;
    config.optimizer.lr = 1e-3, config.optimizer.warmup = 0;
    config.data.whole_documents = config.data.document_mask = false;
    if (!key.empty()) runs::set_setting(config, key, "9");
    return training::make_parts(
        config,
        Gpt2Config{.vocab = 11, .context = 8, .layers = 1, .heads = 2, .width = 8, .dropout = 0.5});
  };
  const auto weights = [&](const std::string& key) {
    return parts_of(key).model->parameters().front().to_vector<float>();
  };
  EXPECT_NE(weights("seed.init"), weights(""));
  for (const char* other : {"seed.data", "seed.dropout", "seed.sampling"})
    EXPECT_EQ(weights(other), weights("")) << other;
  const std::vector<int64_t> ids(16, 3);
  const Batch batch{.inputs = from_values(ids, {2, 8}), .targets = from_values(ids, {2, 8})};
  const auto loss = [&](const std::string& key) { return parts_of(key).step->run(batch, 0).loss; };
  EXPECT_NE(loss("seed.dropout"), loss(""));
  for (const char* other : {"seed.data", "seed.sampling"})
    EXPECT_EQ(loss(other), loss("")) << other;
}

// ---- going on with other settings ----------------------------------------------------------------
TEST(Seeds, OfDataAloneChangeTheOrderOfTheRows) {
  const SmallRun run;
  const training::Corpus corpus = training::make_corpus(run.config.data, run.folder("a"));
  const auto rows = [&](const std::string& key) {
    runs::TrainConfig config = run.config;
    config.data.whole_documents = config.data.document_mask = false;
    if (!key.empty()) runs::set_setting(config, key, "9");
    return training::training_batches(config, corpus).at(3).inputs.to_vector<int64_t>();
  };
  EXPECT_NE(rows("seed.data"), rows(""));
  EXPECT_NE(rows("seed.all"), rows(""));
  for (const char* other : {"seed.init", "seed.dropout", "seed.sampling"})
    EXPECT_EQ(rows(other), rows("")) << other;
}

TEST(Resume, SaysWhatStaysExactAndWhatDoesNot) {
  SmallRun run;
  run.train_until("a", 6);
  run.config.optimizer.lr = 5e-3;
  run.config.train.batch = 8;
  run.config.checkpoint.keep = 2;
  std::vector<std::string> notes;
  run.train("a", {.resume = true, .observer = {.on_note = [&](const std::string& text) {
                                    notes.push_back(text);
                                  }}});
  EXPECT_THAT(notes,
              Contains(HasSubstr("optimizer.lr is 0.005 now, and was 0.01: weights, optimizer "
                                 "state and order of the data go on exactly; updates")));
  EXPECT_THAT(notes, Contains(HasSubstr("train.batch is 8 now, and was 4")));
  EXPECT_THAT(notes, Contains(HasSubstr("checkpoint.keep is 2 now, and was 3: training itself")));
  EXPECT_EQ(run.losses("a").size(), 12U);
}

TEST(Resume, RefusesAnotherModelAndKeepsTheRun) {
  SmallRun run;
  run.train_until("a", 6);
  run.config.model.width = 32;
  EXPECT_THAT(error_of([&] { run.train("a", {.resume = true}); }), HasSubstr("another model"));
  EXPECT_EQ(runs::find_checkpoint(run.folder("a")).step, 6);
}

TEST(Resume, TakesOtherDataAndSaysSo) {
  SmallRun run;
  run.train_until("a", 6);
  const std::string other = (run.folder("b.txt")).string();
  std::ofstream(other) << small_text(60).substr(3000);
  run.config.data.files = {other};
  std::vector<std::string> notes;
  run.train("a", {.resume = true, .observer = {.on_note = [&](const std::string& text) {
                                    notes.push_back(text);
                                  }}});
  EXPECT_THAT(notes, Contains(HasSubstr("the data is other data")));
}

// ---- sources mixed by weight ---------------------------------------------------------------------
// Two files of letters that tell them apart; a row of the one has none of the other's.
class MixedRun : public SmallRun {
 public:
  MixedRun() {
    std::ofstream(folder("a.txt")) << std::string(3000, 'a');
    std::ofstream(folder("b.txt")) << std::string(1000, 'b');
    config.data.files = {folder("a.txt").string(), folder("b.txt").string()};
    config.data.weights = {1, 3};
  }
};

TEST(Mixing, RowsComeByWeightAndGoOnBitForBit) {
  MixedRun run;
  const training::Corpus corpus = training::make_corpus(run.config.data, run.folder("data only"));
  ASSERT_EQ(corpus.train.size(), 2U);
  EXPECT_EQ(corpus.validation.size(), 2U);
  EXPECT_GT(corpus.facts.sources[0].train_tokens, 2 * corpus.facts.sources[1].train_tokens);
  const Batches batches(corpus.train, {.batch = 4, .context = 16});
  for (int64_t step = 0; step < 3; ++step) {
    int64_t of_b = 0;
    for (int64_t row = 0; row < 4; ++row) of_b += batches.place(step, row).source;
    EXPECT_EQ(of_b, 3) << "three rows of four";
  }

  const training::TrainOutcome whole = run.train("whole");
  run.train_until("cut", 7);
  const training::TrainOutcome rest = run.train("cut", {.resume = true});
  EXPECT_EQ(run.losses("cut"), run.losses("whole"));
  EXPECT_EQ(weights_of(rest.checkpoint), weights_of(whole.checkpoint));
  EXPECT_EQ(training::open_run_tokens(run.folder("whole"), "train")->token_count(),
            corpus.facts.train_tokens);
}

TEST(Mixing, OtherWeightsAreToldAndTokensAreNotMadeAgain) {
  MixedRun run;
  run.train_until("a", 6);
  const fs::path shard = run.folder("a") / "data/source-2/train-00000.tokens";
  ASSERT_TRUE(fs::exists(shard));
  const auto made = fs::last_write_time(shard);
  run.config.data.weights = {1, 1};
  std::vector<std::string> notes;
  run.train("a", {.resume = true, .observer = {.on_note = [&](const std::string& text) {
                                    notes.push_back(text);
                                  }}});
  EXPECT_THAT(notes, Contains(HasSubstr("data.weights is 1,1 now, and was 1,3: weights and "
                                        "optimizer state go on exactly; rows come by the new")));
  EXPECT_EQ(fs::last_write_time(shard), made);
}

TEST(Mixing, TokenFilesAreMixedTooAndMustBeOfOneTokenizer) {
  MixedRun run;
  training::make_corpus(run.config.data, run.folder("a"));
  runs::DataConfig tokens{.files = {(run.folder("a") / "data/source-1").string(),
                                    (run.folder("a") / "data/source-2").string()},
                          .weights = {2, 1}};
  const training::Corpus mixed = training::make_corpus(tokens, run.folder("unused"));
  EXPECT_EQ(mixed.train.size(), 2U);
  EXPECT_EQ(mixed.train[0].weight, 2);
  EXPECT_EQ(mixed.validation[1].weight, 1);
  tokens.weights.clear();
  const training::Corpus joined = training::make_corpus(tokens, run.folder("unused"));
  EXPECT_EQ(joined.train.size(), 1U);
  EXPECT_EQ(joined.facts.train_tokens, mixed.facts.train_tokens);
  EXPECT_FALSE(fs::exists(run.folder("unused"))) << "token files stay where they are";

  runs::DataConfig others = run.config.data;
  others.tokenizer = "byte";
  training::make_corpus(others, run.folder("b"));
  tokens.files[1] = (run.folder("b") / "data/source-2").string();
  EXPECT_THAT(error_of([&] { training::make_corpus(tokens, run.folder("unused")); }),
              HasSubstr("prepare them all with one"));
  tokens.files[1] = run.folder("b.txt").string();
  EXPECT_THAT(error_of([&] { training::make_corpus(tokens, run.folder("unused")); }),
              HasSubstr("give files of one sort"));
}

// ---- looking before training ---------------------------------------------------------------------
TEST(LookAtCorpus, IsNearWhatPreparingMakesAndWritesNothing) {
  SmallRun run;
  std::ofstream(run.folder("long.txt")) << small_text(12000);  // some 6 MB: more than is looked at
  for (const std::string& file : {run.config.data.files[0], run.folder("long.txt").string()}) {
    const runs::DataConfig data{.files = {file}};
    const training::CorpusFacts seen = training::look_at_corpus(data, run.folder("nothing"));
    EXPECT_FALSE(fs::exists(run.folder("nothing")));
    const training::CorpusFacts made =
        training::make_corpus(data, run.folder(fs::path(file).stem())).facts;
    EXPECT_TRUE(seen.is_estimate && !made.is_estimate);
    EXPECT_EQ(seen.vocab, made.vocab);
    EXPECT_EQ(seen.text_bytes, made.text_bytes);
    const auto near = [](int64_t a, int64_t b) {
      return std::fabs(static_cast<double>(a) / static_cast<double>(b) - 1);
    };
    EXPECT_LT(near(seen.train_tokens, made.train_tokens), 0.05);
    EXPECT_LT(near(seen.data_bytes.value(), made.data_bytes.value()), 0.1);
  }
  const runs::DataConfig stories{.stories = 300};
  const training::CorpusFacts seen = training::look_at_corpus(stories, run.folder("nothing"));
  const training::CorpusFacts made = training::make_corpus(stories, run.folder("stories")).facts;
  EXPECT_EQ(seen.documents, made.documents);
  EXPECT_EQ(seen.longest_document, made.longest_document);
  EXPECT_EQ(training::look_at_corpus(stories, run.folder("stories"), true).train_tokens,
            made.train_tokens)
      << "of a run that goes on the tokens are there";
}

// ---- full disks ----------------------------------------------------------------------------------
// A small file system that fills up while the run goes on.
// A disk of some bytes, gone at the end whatever happens.
class SmallDisk {
 public:
  explicit SmallDisk(const char* size)
      : is_mounted_(mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, size) == 0) {}
  ~SmallDisk() {
    if (is_mounted_) umount(folder_.path().c_str());
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool is_mounted() const { return is_mounted_; }
  const fs::path& path() const { return folder_.path(); }

 private:
  TempFolder folder_;
  bool is_mounted_;
};

// Tokens that are there already need no second place, and texts whose tokens would not fit are not begun with.
TEST(Trainer, ASmallDiskIsToldBeforeAnythingIsWritten) {
  const SmallDisk disk("size=1m");
  if (!disk.is_mounted()) GTEST_SKIP() << "this process may not mount a file system";
  SmallRun run;
  fs::create_directory_symlink(disk.path(), run.folder("small"));
  run.config.data.tokenizer = "char";  // two bytes for one
  run.config.checkpoint.keep = 1;
  const auto give_text = [&](size_t bytes) {
    std::string text = small_text(static_cast<int64_t>(bytes / 100));
    text.resize(bytes);
    std::ofstream(run.config.data.files.front()) << text;
  };
  give_text(300'000);  // 600 KB of tokens, and little more
  EXPECT_EQ(run.train("small/run").status, "finished");
  fs::remove_all(disk.path() / "run");
  give_text(900'000);
  EXPECT_THAT(error_of([&] { run.train("small/run"); }),
              AllOf(HasSubstr("on disk"), HasSubstr("name another place with --out")));
  EXPECT_FALSE(fs::exists(disk.path() / "run"));
}

TEST(Trainer, AFullDiskKeepsTheLastGoodCheckpoint) {
  const SmallDisk disk("size=2m");
  if (!disk.is_mounted())
    GTEST_SKIP() << "this process may not mount a file system; AFailedWriteIsTold holds the rest";
  SmallRun run;
  fs::create_directory_symlink(disk.path(), run.folder("small"));
  std::vector<std::string> notes;
  const auto fill = [&](const runs::StepRecord& record) {
    if (record.step != 6) return;
    std::ofstream filler(disk.path() / "filler", std::ios::binary);
    const std::string block(1000, 'x');
    while (filler.good()) filler << block << std::flush;
  };
  run.config.data.validation = 0.1;
  const std::string error = error_of([&] {
    run.train("small/run", {.observer = {.on_step = fill, .on_note = [&](const std::string& t) {
                                           notes.push_back(t);
                                         }}});
  });
  EXPECT_THAT(error,
              AllOf(HasSubstr("No space left on device"), HasSubstr("the last good one is")));
  const runs::FoundCheckpoint found = runs::find_checkpoint(run.folder("small/run"));
  EXPECT_GE(found.step, 4);
  EXPECT_LT(found.step, 12);
  fs::remove(disk.path() / "filler");
  EXPECT_EQ(run.train("small/run", {.resume = true}).status, "finished");
}

}  // namespace
}  // namespace brrr
