#include "brrr/train/auto_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "brrr/base/error.h"

namespace brrr::training {
namespace {

struct Size {
  int64_t layers, heads, width;
  int64_t parameters() const { return 12 * layers * width * width; }  // without tables
};
// From smallest to largest; heads of 16 to 64 numbers.
constexpr Size kSizes[] = {{1, 4, 64},  {2, 4, 64},  {2, 4, 96},  {2, 4, 128}, {4, 4, 128},
                           {4, 6, 192}, {6, 8, 256}, {6, 6, 384}, {8, 8, 512}, {12, 12, 768}};

// The recipe of the embedded stories: found by trying. Fewer steps write
// stories that forget who the friend was; more may take over three minutes on two cores in a bad hour.
constexpr Size kStorySize{2, 8, 128};
constexpr int64_t kStorySteps = 4600, kStoryBatch = 8;
constexpr double kStoryRate = 4e-3;

constexpr double kUsedPeak = 0.25;         // of the peak, what small models reach
constexpr double kTokensPerParameter = 8;  // fewer would leave a larger model untrained
constexpr double kUsedMemory = 0.8;        // of what is free
constexpr double kMostEpochs = 20;         // more is learning by heart
constexpr int64_t kTokensPerStep = 2048;
constexpr int64_t kLongestRow = 512;

double training_flops_of(int64_t parameters) { return 6.0 * static_cast<double>(parameters); }

class Resolver {
 public:
  Resolver(const runs::TrainConfig& config, const DataFacts& data, const MachineFacts& machine)
      : data_(data), machine_(machine) {
    run_.config = config;
  }

  ResolvedRun resolve() {
    runs::TrainConfig& c = run_.config;
    if (!c.model.preset.empty()) take_preset();
    choose_rows();
    choose_model();
    choose_steps();
    choose_rest();
    make_model_config();
    return std::move(run_);
  }

 private:
  template <typename... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) {
    run_.reasons.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  // A preset gives the sizes that were not given themselves.
  void take_preset() {
    const ModelConfig preset = model_preset(run_.config.model.preset);
    runs::ModelSettings& model = run_.config.model;
    model.family = family_of(preset);
    if (!model.layers) model.layers = preset.size("layers");
    if (!model.width) model.width = preset.size("width");
    if (!model.heads && preset.has("heads")) model.heads = preset.size("heads");
    if (!model.context) model.context = std::min<int64_t>(context_of(preset), kLongestRow);
    run_.model = preset;
    say("model {}, with the vocabulary of the data and a context of {}", model.preset,
        runs::resolved(model.context));
  }

  // How long rows are, and whether they hold whole documents.
  void choose_rows() {
    runs::TrainConfig& c = run_.config;
    const int64_t whole = (data_.longest_document + 7) / 8 * 8;
    const bool fits = data_.documents > 1 && whole > 0 && whole <= kLongestRow;
    if (!c.data.whole_documents) c.data.whole_documents = data_.is_stories && fits;
    if (!c.model.context) {
      if (runs::resolved(c.data.whole_documents) && fits) {
        c.model.context = whole;
        say("context {}: the longest document has {} tokens, so rows hold whole ones", whole,
            data_.longest_document);
      } else {
        // At least 16 windows, so that there is something to shuffle.
        const int64_t most = std::max<int64_t>(data_.train_tokens / 16, 8);
        c.model.context = std::min<int64_t>(128, most);
        say("context {}: {}", runs::resolved(c.model.context),
            runs::resolved(c.model.context) == 128
                ? "long enough for a few sentences"
                : "the text is so short that longer rows would be few");
      }
    }
    check(data_.train_tokens > runs::resolved(c.model.context), "the training text has ",
          data_.train_tokens, " tokens, and a row of ", runs::resolved(c.model.context),
          " and a target need ", runs::resolved(c.model.context) + 1,
          "; give more text or a smaller --context");
    if (!c.data.document_mask)
      c.data.document_mask = data_.documents > 1 && !runs::resolved(c.data.whole_documents);
    if (!c.train.batch)
      c.train.batch =
          data_.is_stories
              ? kStoryBatch
              : std::clamp<int64_t>(kTokensPerStep / runs::resolved(c.model.context), 1, 64);
  }

  int64_t tokens_per_step() const {
    const runs::TrainConfig& c = run_.config;
    return runs::resolved(c.train.batch) * c.train.accumulate * runs::resolved(c.model.context);
  }
  // Tokens that this machine trains on in the time allowed.
  double affordable_tokens(int64_t parameters) const {
    const double head = static_cast<double>(data_.vocab * run_.config.model.width.value_or(128));
    return machine_.peak_flops.value() * kUsedPeak * run_.config.train.minutes * 60 /
           (training_flops_of(parameters) + 6 * head);
  }

  // A rough count for choosing; the plan of the run counts to the byte. Parameters, gradients, two moments and
  // a copy of all but gradients while a checkpoint is written; what a layer keeps of a token for the backward
  // pass, about 20 numbers for each of its width; logits and their gradient.
  bool fits(const Size& size) const {
    const double head = static_cast<double>(data_.vocab * size.width),
                 parameters = static_cast<double>(size.parameters()) + head;
    const auto tokens = static_cast<double>(runs::resolved(run_.config.train.batch) *
                                            runs::resolved(run_.config.model.context));
    const double kept = 20.0 * static_cast<double>(size.layers * size.width),
                 logits = 2.0 * static_cast<double>(data_.vocab);
    return 4 * (7 * parameters + tokens * (kept + logits)) <
           kUsedMemory * static_cast<double>(machine_.memory.value());
  }

  void choose_model() {
    runs::ModelSettings& model = run_.config.model;
    const bool all_given =
        model.layers && model.width && (model.heads || !find_family(model.family).has("heads"));
    if (all_given) return;
    Size size = kStorySize;
    if (!data_.is_stories) {
      size = kSizes[0];
      bool lacks_memory = false;
      const double most_tokens = kMostEpochs * static_cast<double>(data_.train_tokens);
      for (const Size& each : kSizes) {
        const double tokens = std::min(affordable_tokens(each.parameters()), most_tokens);
        const double wanted = kTokensPerParameter * static_cast<double>(each.parameters());
        if (tokens >= wanted && fits(each)) size = each;
        lacks_memory = lacks_memory || (tokens >= wanted && !fits(each));
      }
      say("{} layer{} of width {}: the largest that sees {} tokens a parameter within {} minutes "
          "of "
          "{} cores and {} passes over {} tokens{}",
          size.layers, size.layers == 1 ? "" : "s", size.width, kTokensPerParameter,
          run_.config.train.minutes, machine_.cores, kMostEpochs, with_commas(data_.train_tokens),
          lacks_memory ? fmt::format(", and fits into {}", to_text(machine_.memory)) : "");
    } else {
      say("{} layers of width {}: enough to learn the grammar of the stories", size.layers,
          size.width);
    }
    if (!model.layers) model.layers = size.layers;
    if (!model.width) model.width = size.width;
    if (!model.heads) model.heads = runs::resolved(model.width) % size.heads == 0 ? size.heads : 1;
  }

  void choose_steps() {
    runs::TrainConfig& c = run_.config;
    if (c.train.steps) return;
    if (data_.is_stories) {
      c.train.steps = kStorySteps;
      say("{} steps: after so many nearly all stories that it writes are right", kStorySteps);
      return;
    }
    const int64_t parameters = 12 * runs::resolved(c.model.layers) * runs::resolved(c.model.width) *
                               runs::resolved(c.model.width);
    const double by_time = affordable_tokens(parameters),
                 by_data = kMostEpochs * static_cast<double>(data_.train_tokens);
    const double tokens = std::min(by_time, by_data);
    c.train.steps = std::clamp<int64_t>(
        std::llround(tokens / static_cast<double>(tokens_per_step())), 50, 100'000'000);
    say("{} steps: {}", runs::resolved(c.train.steps),
        by_time < by_data ? fmt::format("about {} minutes here", c.train.minutes)
                          : fmt::format("{} passes over the text", kMostEpochs));
  }

  void choose_rest() {
    runs::TrainConfig& c = run_.config;
    const int64_t steps = runs::resolved(c.train.steps);
    if (!c.optimizer.lr) {
      const double by_width = 0.25 / static_cast<double>(runs::resolved(c.model.width));
      c.optimizer.lr = data_.is_stories ? kStoryRate : std::clamp(by_width, 3e-4, 3e-3);
      say("learning rate {:.2g}: {}", runs::resolved(c.optimizer.lr),
          data_.is_stories ? "small models take large steps" : "a quarter over the width");
    }
    if (!c.optimizer.warmup) c.optimizer.warmup = std::min<int64_t>(100, steps / 20);
    if (!c.report.eval_every) c.report.eval_every = std::max<int64_t>(steps / 20, 1);
    if (!c.report.sample_every) c.report.sample_every = std::max<int64_t>(steps / 4, 1);
    if (!c.checkpoint.every) c.checkpoint.every = std::max<int64_t>(steps / 10, 1);
  }

  void make_model_config() {
    const runs::ModelSettings& model = run_.config.model;
    if (model.preset.empty()) {
      const ModelFamily& family = find_family(model.family);
      run_.model = family.from_scratch ? family.from_scratch(runs::resolved(model.width))
                                       : family.defaults();
    }
    ModelConfig& made = run_.model;
    made.set("vocab", data_.vocab);
    made.set("context", runs::resolved(model.context));
    made.set("layers", runs::resolved(model.layers));
    made.set("width", runs::resolved(model.width));
    made.set("dropout", model.dropout);
    if (model.heads) made.set_if_there("heads", *model.heads);
  }

  DataFacts data_;
  MachineFacts machine_;
  ResolvedRun run_;
};

}  // namespace

ResolvedRun resolve_sizes(const runs::TrainConfig& config, const DataFacts& data,
                          const MachineFacts& machine) {
  runs::check_config(config);
  return Resolver(config, data, machine).resolve();
}

}  // namespace brrr::training
