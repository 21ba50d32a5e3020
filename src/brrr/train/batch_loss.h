// The mean loss over the same batches at every call, cut as in training: rows of whole documents stay
// whole, so that training and validation loss differ by the data alone.
#pragma once

#include "brrr/data/batches.h"
#include "brrr/nn/language_model.h"
#include "brrr/runtime/compile.h"

namespace brrr::training {

struct BatchLossOptions {
  int64_t batches = 8;
  bool document_mask = false;
  CrossEntropyOptions loss;
  int64_t head_rows = 0;  // as in TrainStepOptions
};

class BatchLoss {
 public:
  // The model must outlive it; its parameters may change between calls.
  BatchLoss(const LanguageModel& model, Batches batches, const BatchLossOptions& options);
  BatchLoss(const BatchLoss&) = delete;  // its program knows where it lives
  BatchLoss& operator=(const BatchLoss&) = delete;

  double run();  // over all positions that count; compiled at the first call

 private:
  const LanguageModel& model_;
  Batches batches_;
  BatchLossOptions options_;
  runtime::CompiledFunction program_;
};

}  // namespace brrr::training
