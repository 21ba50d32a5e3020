#include "brrr/train/parts.h"

#include "brrr/base/error.h"
#include "brrr/train/vocab_padding.h"

namespace brrr {

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          std::vector<NamedTensor> parameters) {
  const StatePrecision precision =
      config.bf16_state ? StatePrecision::bf16 : StatePrecision::as_parameter;
  const double decay = config.weight_decay;
  if (config.name == "adamw")
    return std::make_unique<AdamW>(std::move(parameters),
                                   AdamWOptions{.beta1 = config.beta1,
                                                .beta2 = config.beta2,
                                                .eps = config.eps,
                                                .weight_decay = decay,
                                                .state_precision = precision});
  if (config.name == "adam")
    return std::make_unique<Adam>(std::move(parameters), AdamOptions{.beta1 = config.beta1,
                                                                     .beta2 = config.beta2,
                                                                     .eps = config.eps,
                                                                     .weight_decay = decay,
                                                                     .state_precision = precision});
  if (config.name == "sgd" || config.name == "nesterov")
    return std::make_unique<Sgd>(std::move(parameters),
                                 SgdOptions{.momentum = config.beta1,
                                            .nesterov = config.name == "nesterov",
                                            .weight_decay = decay,
                                            .state_precision = precision});
  if (config.name == "lion")
    return std::make_unique<Lion>(std::move(parameters), LionOptions{.beta1 = config.beta1,
                                                                     .beta2 = config.beta2,
                                                                     .weight_decay = decay,
                                                                     .state_precision = precision});
  if (config.name == "muon")
    return std::make_unique<Muon>(std::move(parameters),
                                  MuonOptions{.weight_decay = decay, .state_precision = precision});
  if (config.name == "rmsprop")
    return std::make_unique<RmsProp>(std::move(parameters),
                                     RmsPropOptions{.alpha = config.beta2,
                                                    .eps = config.eps,
                                                    .weight_decay = decay,
                                                    .state_precision = precision});
  if (config.name == "adagrad")
    return std::make_unique<AdaGrad>(
        std::move(parameters), AdaGradOptions{.weight_decay = decay, .state_precision = precision});
  fail("there is no optimizer \"", config.name,
       "\"; use adamw, adam, sgd, nesterov, lion, muon, rmsprop or adagrad");
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

PipelineOptions pipeline_options(const TrainConfig& config) {
  PipelineOptions options;
  options.precision.policy = config.train.precision;
  options.remat.policy = config.train.recompute;
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
          .head_rows = padded_vocab(parts.model->vocab(), config.train.pad_vocab, target),
          .pipeline = pipeline_options(config)});
  return parts;
}

}  // namespace brrr
