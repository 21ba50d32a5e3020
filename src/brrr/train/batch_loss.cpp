#include "brrr/train/batch_loss.h"

#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/reduce/reduce.h"

namespace brrr::training {

BatchLoss::BatchLoss(const LanguageModel& model, Batches batches, const BatchLossOptions& options)
    : model_(model),
      batches_(std::move(batches)),
      options_(options),
      program_(
          [this](std::span<const Tensor> inputs) -> Tensors {
            NoGrad forward_only;
            const ForwardInputs more{.documents = inputs.size() > 2 ? inputs[2] : Tensor()};
            return {model_.losses(inputs[0], inputs[1], more, options_.loss, options_.head_rows)
                        .cross_entropy};
          },
          {}) {}

double BatchLoss::run() {
  double sum = 0, positions = 0;
  for (int64_t step = 0; step < options_.batches; ++step) {
    const Batch batch = batches_.at(step);
    std::vector<Tensor> inputs{batch.inputs, batch.targets};
    if (options_.document_mask) inputs.push_back(batch.documents);
    double count = static_cast<double>(batch.targets.numel());
    if (const auto ignored = options_.loss.ignore_index) {
      count = 0;
      for (const int64_t target : batch.targets.to_vector<int64_t>()) count += target != *ignored;
    }
    sum += program_.run(inputs)[0].item<double>() * count;
    positions += count;
  }
  return positions > 0 ? sum / positions : 0;
}

}  // namespace brrr::training
