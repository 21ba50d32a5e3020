// The vocabulary filled up inside the training program: the same run in every bit, whatever the setting.
#include "brrr/compiler/head/vocab_padding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "brrr/autodiff/grad.h"
#include "brrr/infer/load_model.h"
#include "brrr/io/safetensors.h"
#include "brrr/nn/models.h"
#include "brrr/train/plan.h"
#include "brrr/train/setup.h"
#include "support/error_of.h"
#include "support/h200.h"
#include "train/small_run.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;

TEST(VocabPadding, AutoFollowsTheTilesOfTheDevice) {
  const compiler::Target& gpu = h200();
  EXPECT_EQ(compiler::padded_vocab(50257, "auto", gpu), 50304) << "393 tiles of 128";
  EXPECT_EQ(compiler::padded_vocab(50304, "auto", gpu), 50304);
  EXPECT_EQ(compiler::padded_vocab(32000, "auto", gpu), 32000)
      << "rows begin at multiples of 128 bytes";
  EXPECT_EQ(compiler::padded_vocab(65, "auto", gpu), 128);
  EXPECT_EQ(compiler::padded_vocab(50257, "auto", compiler::cpu_target()), 50257)
      << "panels are packed anyway";
  EXPECT_EQ(compiler::padded_vocab(50257, "off", gpu), 50257);
  EXPECT_EQ(compiler::padded_vocab(50257, "1", gpu), 50257);
  EXPECT_EQ(compiler::padded_vocab(50257, "512", compiler::cpu_target()), 50688);
}

TEST(VocabPadding, RefusesWhatIsNoMultiple) {
  for (const char* setting : {"", "0", "-64", "64.5", "many", "1e3", "99999999999999999999"}) {
    runs::TrainConfig config;
    config.train.pad_vocab = setting;
    EXPECT_THAT(error_of([&] { runs::check_config(config); }),
                HasSubstr("auto, off, or a whole number from 1 to 65536"))
        << setting;
  }
}

// ---- one model, eagerly: loss and every gradient -------------------------------------------------
struct LossAndGradients {
  double loss = 0;
  std::vector<std::vector<float>> gradients;
  bool operator==(const LossAndGradients&) const = default;
};

LossAndGradients gradients_of(const ModelConfig& config, int64_t head_rows,
                              const CrossEntropyOptions& options) {
  Random random(3);
  const std::unique_ptr<LanguageModel> model = make_model(config, random);
  std::vector<int64_t> ids(24);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * 7 % 37);
  const Tensor tokens = from_values(ids, {2, 12});
  std::reverse(ids.begin(), ids.end());
  const LanguageLoss losses =
      model->losses(tokens, from_values(ids, {2, 12}), {}, options, head_rows);
  LossAndGradients result{.loss = losses.total.item<double>(), .gradients = {}};
  for (const Tensor& each : grad(losses.total, model->parameters()))
    result.gradients.push_back(each.to_vector<float>());
  return result;
}

TEST(VocabPadding, KeepsLossAndGradientsOfEveryFamilyBitForBit) {
  LlamaConfig llama;
  llama.vocab = 37, llama.context = 16, llama.layers = 1, llama.heads = 2;
  llama.width = 16, llama.hidden = 32;
  LlamaConfig tied_llama = llama;
  tied_llama.tied = true;
  const ModelConfig models[] = {
      Gpt2Config{.vocab = 37, .context = 16, .layers = 1, .heads = 2, .width = 16}, llama,
      tied_llama, RecurrentLmConfig{.vocab = 37, .context = 16, .layers = 1, .width = 16}};
  const CrossEntropyOptions options[] = {
      {}, {.ignore_index = 5, .label_smoothing = 0.1, .soft_cap = 4, .z_loss = 1e-3}};
  for (const ModelConfig& model : models) {
    for (const CrossEntropyOptions& each : options) {
      const LossAndGradients plain = gradients_of(model, 0, each);
      for (const int64_t rows : {37, 38, 64, 128, 512})
        EXPECT_EQ(gradients_of(model, rows, each), plain) << to_json(model) << " with " << rows;
    }
  }
}

TEST(VocabPadding, NeedsARowForEveryToken) {
  EXPECT_THAT(error_of([] {
                gradients_of(
                    Gpt2Config{.vocab = 37, .context = 16, .layers = 1, .heads = 2, .width = 16},
                    32, {});
              }),
              HasSubstr("a head of 32 rows has no row for each of 37 tokens"));
}

// ---- whole runs ----------------------------------------------------------------------------------
struct PaddedRun : SmallRun {
  explicit PaddedRun(std::string setting) { config.train.pad_vocab = std::move(setting); }
  std::string end_of(const std::string& name) const {
    return weights_of(runs::find_checkpoint(folder(name)).path);
  }
};

TEST(VocabPadding, LeavesTheRunAsItIsBitForBit) {
  for (const compiler::Precision precision :
       {compiler::Precision::f32, compiler::Precision::bf16_mixed}) {
    for (const int64_t accumulate : {1, 2}) {
      PaddedRun plain("off"), padded("64");
      for (PaddedRun* run : {&plain, &padded}) {
        run->config.train.precision = precision;
        run->config.train.accumulate = accumulate;
        run->config.report.sample_every = 6;
        run->train("a");
      }
      EXPECT_EQ(padded.losses("a"), plain.losses("a"));
      EXPECT_EQ(padded.end_of("a"), plain.end_of("a")) << "parameters and optimizer state";
      const runs::RunLog ours = runs::read_run_log(padded.folder("a")),
                         theirs = runs::read_run_log(plain.folder("a"));
      ASSERT_EQ(ours.steps.size(), theirs.steps.size());
      for (size_t i = 0; i < ours.steps.size(); ++i) {
        EXPECT_EQ(ours.steps[i].grad_norm, theirs.steps[i].grad_norm) << i;
        EXPECT_EQ(ours.steps[i].validation_loss, theirs.steps[i].validation_loss) << i;
        EXPECT_EQ(ours.steps[i].sample, theirs.steps[i].sample) << i;
      }
    }
  }
}

// What leaves the run is the model: files have a row for every token and no more, and what is loaded from them
// gives the logits of the run without filling, number by number.
TEST(VocabPadding, DoesNotLeakIntoCheckpoints) {
  PaddedRun plain("off"), padded("512");
  plain.train("a");
  padded.train("a");
  const infer::LoadedModel theirs = infer::load_model(plain.folder("a")),
                           ours = infer::load_model(padded.folder("a"));
  const int64_t vocab = vocab_of(theirs.config);
  ASSERT_LT(vocab, 512);
  EXPECT_EQ(vocab_of(ours.config), vocab);
  const SafetensorsFile file(runs::find_checkpoint(padded.folder("a")).path / "model.safetensors");
  int tables = 0;
  for (const SafetensorsFile::Entry& entry : file.entries()) {
    for (const int64_t size : entry.type.shape) {
      EXPECT_NE(size, 512) << entry.name;
      tables += size == vocab ? 1 : 0;
    }
  }
  EXPECT_GE(tables, 1) << "the table of tokens has a row for each";
  std::vector<int64_t> ids(16);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * 5) % vocab;
  const Tensor tokens = from_values(ids, {1, 16});
  const Tensor logits = ours.model->logits(tokens), expected = theirs.model->logits(tokens);
  EXPECT_EQ(logits.dim(-1), vocab);
  EXPECT_EQ(logits.to_vector<float>(), expected.to_vector<float>());
}

TEST(VocabPadding, ReallyFillsTheProgramUp) {
  runs::TrainConfig config = SmallRun().config;
  config.data.whole_documents = config.data.document_mask = false;
  const Gpt2Config model{.vocab = 37, .context = 16, .layers = 1, .heads = 2, .width = 16};
  const auto widths = [&](const char* setting,
                          const compiler::Target& target =
                              compiler::cpu_target()) {  // of products that read or make logits
    config.train.pad_vocab = setting;
    const DeviceScope nothing(Device::null());
    const training::TrainingParts parts = training::make_parts(config, model, target);
    const graph::Graph graph = parts.step->trace(training::null_batch(4, 16));
    std::set<int64_t> found;
    for (const graph::Node& node : graph.nodes) {
      if (node.op->kind != OpKind::contraction) continue;
      for (const graph::ValueId input : node.inputs) {
        for (const int64_t size : graph.type(input).shape)
          if (size == 37 || size == 64) found.insert(size);
      }
    }
    return found;
  };
  EXPECT_EQ(widths("off"), (std::set<int64_t>{37, 64})) << "64 is the hidden width";
  EXPECT_EQ(widths("64"), std::set<int64_t>{64});
  EXPECT_EQ(widths("auto"), (std::set<int64_t>{37, 64}));
  EXPECT_EQ(widths("auto", h200()), std::set<int64_t>{64});
}

TEST(VocabPadding, IsNoWorkOfTheModel) {
  runs::TrainConfig config = SmallRun().config;
  config.data.whole_documents = config.data.document_mask = false;
  const Gpt2Config model{.vocab = 37, .context = 16, .layers = 1, .heads = 2, .width = 16};
  const hardware::Rates rates = hardware::rates_from_peaks(
      "a test", {.flops_per_second = 1e10, .bytes_per_second = 1e10, .launch_seconds = 1e-6});
  config.train.pad_vocab = "off";
  const training::TrainPlan plain =
      training::plan_training(config, model, compiler::cpu_target(), rates, Bytes());
  config.train.pad_vocab = "512";
  const training::TrainPlan padded =
      training::plan_training(config, model, compiler::cpu_target(), rates, Bytes());
  EXPECT_EQ(padded.model_flops_per_token.value(), plain.model_flops_per_token.value());
  EXPECT_EQ(padded.parameters, plain.parameters);
  EXPECT_EQ(padded.checkpoint, plain.checkpoint);
  EXPECT_GT(padded.arena, plain.arena) << "the step does hold wider logits";
}

TEST(VocabPadding, ChangesBetweenTheHalvesOfARun) {
  PaddedRun plain("off");
  plain.train("a");
  for (const auto& [first, second] : {std::pair("off", "64"), std::pair("128", "off")}) {
    PaddedRun run(first);
    run.train_until("a", 6);
    run.config.train.pad_vocab = second;
    std::vector<std::string> notes;
    run.train("a", {.resume = true, .observer = {.on_note = [&](const std::string& text) {
                                      notes.push_back(text);
                                    }}});
    EXPECT_EQ(run.losses("a"), plain.losses("a"));
    EXPECT_EQ(run.end_of("a"), plain.end_of("a"));
    EXPECT_THAT(notes, ::testing::Contains(HasSubstr("train.pad_vocab")));
  }
}

}  // namespace
}  // namespace brrr
