// Steps on paper for tests of passes and prices: without the largest activations that layers report, so that what is
// counted is the model's and the update's, and with exactly these options of the compiler.
#pragma once

#include "brrr/compiler/head/vocab_padding.h"
#include "brrr/train/setup.h"

namespace brrr {

inline training::StepSpec plain_step(std::string_view model, const training::StepSizes& sizes,
                                     const compiler::PipelineOptions& pipeline = {}) {
  training::StepSpec spec = training::on_paper(
      training::named_step(model, sizes, pipeline.target.value_or(compiler::cpu_target())));
  spec.activations = false;
  spec.pipeline = pipeline;
  return spec;
}

// The same on the host, with what it is called with. Its graph may be planned for any device.
struct HostStep {
  training::TrainingParts parts;
  Batch batch;
  std::vector<Tensor> inputs;

  explicit HostStep(training::StepSpec spec) {
    spec.is_on_paper = false;
    const int64_t vocab = vocab_of(std::get<ModelConfig>(spec.model));
    spec.pad_vocab = std::to_string(compiler::padded_vocab(vocab, "auto", spec.target));
    spec.target = compiler::cpu_target();
    spec.pipeline.device.reset(), spec.pipeline.target.reset();
    parts = training::make_parts(spec);
    batch = training::make_batch(spec);
    inputs = parts.step->inputs_of(batch);
  }
  graph::Graph trace() const { return parts.step->trace(batch); }
};

}  // namespace brrr
