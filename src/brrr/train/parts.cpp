#include "brrr/train/parts.h"

#include "brrr/base/error.h"
#include "brrr/train/vocab_padding.h"

namespace brrr {

OptimizerSettings optimizer_settings(const OptimizerConfig& config) {
  return {.weight_decay = config.weight_decay,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .eps = config.eps,
          .bf16_state = config.bf16_state};
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          std::vector<NamedTensor> parameters) {
  return make_optimizer(config.name, std::move(parameters), optimizer_settings(config));
}

Schedule make_schedule(const TrainConfig& config) {
  return Schedule({.shape = config.optimizer.schedule,
                   .rate = resolved(config.optimizer.lr),
                   .steps = resolved(config.train.steps),
                   .warmup = resolved(config.optimizer.warmup),
                   .final_share = config.optimizer.final_share});
}

CrossEntropyOptions loss_options(const TrainConfig& config) {
  CrossEntropyOptions options{.label_smoothing = config.train.label_smoothing,
                              .soft_cap = config.train.soft_cap,
                              .z_loss = config.train.z_loss};
  if (resolved(config.data.whole_documents)) options.ignore_index = kIgnoredTarget;
  return options;
}

PipelineOptions pipeline_options(const TrainConfig& config, Device target) {
  PipelineOptions options;
  const bool has_tensor_cores = target.kind == DeviceKind::cuda;
  options.precision.policy = config.train.precision;
  options.precision.matmul = config.train.matmul_precision.value_or(
      has_tensor_cores ? MatmulPrecision::tf32 : MatmulPrecision::ieee);
  for (const std::string& text : config.train.precision_of)
    options.precision.overrides.push_back(parse_precision_override(text));
  options.remat.policy = config.train.recompute;
  if (config.train.memory_budget_mib)
    options.remat.memory_budget = Bytes(*config.train.memory_budget_mib * (int64_t{1} << 20));
  return config.train.without.empty() ? options : without(options, config.train.without);
}

int64_t rows_per_step(const TrainConfig& config) {
  return resolved(config.train.batch) * config.train.accumulate;
}

TrainingParts make_parts(const TrainConfig& config, const ModelConfig& model, Device target) {
  TrainingParts parts;
  Random random(config.seed_of(config.seed.init));
  parts.model = make_model(model, random);
  parts.optimizer = make_optimizer(config.optimizer, parts.model->trainable_parameters());
  if (config.optimizer.average > 0)
    parts.average = std::make_unique<WeightAverage>(
        parts.model->named_parameters(), WeightAverageOptions{.decay = config.optimizer.average});
  parts.step = std::make_unique<TrainStep>(
      *parts.model, *parts.optimizer, parts.average.get(), make_schedule(config),
      TrainStepOptions{
          .loss = loss_options(config),
          .accumulate = config.train.accumulate,
          .clip = config.optimizer.clip,
          .activations = config.report.activations_every > 0,
          .document_mask = resolved(config.data.document_mask),
          .dropout_seed = config.seed_of(config.seed.dropout),
          .halts = config.guard.action == GuardAction::stop,
          .head_rows = padded_vocab(parts.model->vocab(), config.train.pad_vocab, target),
          .pipeline = pipeline_options(config, target)});
  return parts;
}

}  // namespace brrr
