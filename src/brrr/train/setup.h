// A training step by its specification: model, optimizer, average of the weights and the step over them. On a device
// to train; on paper to plan.
#pragma once

#include <memory>

#include "brrr/device/default_device.h"
#include "brrr/run/config.h"
#include "brrr/train/step.h"
#include "brrr/train/step_spec.h"

namespace brrr::training {

struct TrainingParts {
  std::unique_ptr<LanguageModel> model;
  std::unique_ptr<Layer> classifier;  // in place of `model`
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<WeightAverage> average;  // null: none is kept
  std::unique_ptr<TrainStep> step;

  const Module& trained() const;  // the language model or the classifier
};
TrainingParts make_parts(const StepSpec& spec);
// Settings that are still open are an Error here: resolve_sizes (auto_size.h) closes them. `target` is what
// the step is compiled for, also where it is only planned: inside DeviceScope(Device::null()).
TrainingParts make_parts(const runs::TrainConfig& config, const ModelConfig& model,
                         const compiler::Target& target = compiler::target_of(default_device()));

OptimizerSettings optimizer_settings(const runs::OptimizerConfig& config);
std::unique_ptr<Optimizer> make_optimizer(const runs::OptimizerConfig& config,
                                          std::vector<NamedTensor> parameters);
ScheduleOptions schedule_options(const runs::TrainConfig& config);
CrossEntropyOptions loss_options(const runs::TrainConfig& config);
compiler::PipelineOptions pipeline_options(const runs::TrainConfig& config,
                                           const compiler::Target& target);

// Rows of one step, all micro-batches together.
int64_t rows_per_step(const runs::TrainConfig& config);

}  // namespace brrr::training
