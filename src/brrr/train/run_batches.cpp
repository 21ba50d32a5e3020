#include "brrr/train/run_batches.h"

#include <algorithm>

#include "brrr/compiler/head/vocab_padding.h"
#include "brrr/device/default_device.h"
#include "brrr/train/setup.h"

namespace brrr::training {
namespace {

BatchOptions batch_options(const runs::TrainConfig& config, const Corpus& corpus) {
  return {.batch = rows_per_step(config),
          .context = runs::resolved(config.model.context),
          .seed = config.seed_of(config.seed.data),
          .order = WindowOrder::shuffled,
          .cut = runs::resolved(config.data.whole_documents) ? WindowCut::whole_documents
                                                             : WindowCut::even,
          .documents = runs::resolved(config.data.document_mask),
          .vocab_size = corpus.facts.vocab};
}

// Those that fill a row; where none does, the longest, for shorter rows.
std::vector<BatchSource> sources_to_evaluate(const std::vector<BatchSource>& all, int64_t context) {
  std::vector<BatchSource> enough;
  for (const BatchSource& source : all) {
    if (source.tokens.token_count() > context) enough.push_back(source);
  }
  if (!enough.empty() || all.empty()) return enough;
  return {*std::max_element(all.begin(), all.end(), [](const BatchSource& a, const BatchSource& b) {
    return a.tokens.token_count() < b.tokens.token_count();
  })};
}

}  // namespace

Batches training_batches(const runs::TrainConfig& config, const Corpus& corpus) {
  return Batches(corpus.train, batch_options(config, corpus));
}

std::unique_ptr<BatchLoss> make_evaluation(const runs::TrainConfig& config, const Corpus& corpus,
                                           const std::vector<BatchSource>& all,
                                           const LanguageModel& model) {
  BatchOptions options = batch_options(config, corpus);
  const std::vector<BatchSource> sources = sources_to_evaluate(all, options.context);
  if (sources.empty() || sources.front().tokens.token_count() < 2) return nullptr;
  options.seed = 0;
  options.batch = runs::resolved(config.train.batch);
  options.context = std::min(options.context, sources.front().tokens.token_count() - 1);
  CrossEntropyOptions loss = loss_options(config);
  loss.z_loss = loss.label_smoothing = 0;  // what is reported is the plain loss
  return std::make_unique<BatchLoss>(
      model, Batches(sources, options),
      BatchLossOptions{.batches = config.report.eval_batches,
                       .document_mask = runs::resolved(config.data.document_mask),
                       .loss = loss,
                       .head_rows = compiler::padded_vocab(model.vocab(), config.train.pad_vocab,
                                                           compiler::target_of(default_device()))});
}

}  // namespace brrr::training
