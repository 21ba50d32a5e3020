// Which rows a run is trained on, and which it is judged by.
#pragma once

#include <memory>

#include "brrr/train/batch_loss.h"
#include "brrr/train/corpus.h"

namespace brrr::training {

// Settings that are still open are an Error here: resolve_sizes (auto_size.h) closes them.
Batches training_batches(const runs::TrainConfig& config, const Corpus& corpus);

// The same rows at every evaluation, whatever the seed of the order, mixed as in training; `all` are the
// sources of one split. Null where there is nothing to predict. The model must outlive the result.
std::unique_ptr<BatchLoss> make_evaluation(const runs::TrainConfig& config, const Corpus& corpus,
                                           const std::vector<BatchSource>& all,
                                           const LanguageModel& model);

}  // namespace brrr::training
