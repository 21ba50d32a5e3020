#include "brrr/train/parts.h"

#include "brrr/base/error.h"
#include "brrr/train/vocab_padding.h"

namespace brrr {

// What is left open is as each rule's own options have it, but for the memory of AdamW's second moment, which
// is shorter here: runs are.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          std::vector<NamedTensor> parameters) {
  const auto set_up = [&](auto options) {
    options.weight_decay = config.weight_decay;
    options.state_precision =
        config.bf16_state ? StatePrecision::bf16 : StatePrecision::as_parameter;
    if constexpr (requires { options.groups; }) options.groups = no_decay_of_vectors();
    if constexpr (requires { options.beta1; }) options.beta1 = config.beta1.value_or(options.beta1);
    if constexpr (requires { options.beta2; }) options.beta2 = config.beta2.value_or(options.beta2);
    if constexpr (requires { options.eps; }) options.eps = config.eps.value_or(options.eps);
    return options;
  };
  const std::string& name = config.name;
  if (name == "adamw")
    return std::make_unique<AdamW>(std::move(parameters), set_up(AdamWOptions{.beta2 = 0.99}));
  if (name == "adam")
    return std::make_unique<Adam>(std::move(parameters), set_up(AdamOptions{.beta2 = 0.99}));
  if (name == "lion") return std::make_unique<Lion>(std::move(parameters), set_up(LionOptions{}));
  if (name == "adagrad")
    return std::make_unique<AdaGrad>(std::move(parameters), set_up(AdaGradOptions{}));
  if (name == "sgd" || name == "nesterov") {
    SgdOptions options = set_up(SgdOptions{.nesterov = name == "nesterov"});
    options.momentum = config.beta1.value_or(0.9);
    return std::make_unique<Sgd>(std::move(parameters), options);
  }
  if (name == "rmsprop") {
    RmsPropOptions options = set_up(RmsPropOptions{});
    options.alpha = config.beta2.value_or(options.alpha);
    return std::make_unique<RmsProp>(std::move(parameters), options);
  }
  if (name == "muon") {
    MuonOptions options = set_up(MuonOptions{});
    options.momentum = config.beta1.value_or(options.momentum);
    options.adam.beta2 = config.beta2.value_or(options.adam.beta2);
    options.adam.eps = config.eps.value_or(options.adam.eps);
    return std::make_unique<Muon>(std::move(parameters), options);
  }
  fail("there is no optimizer \"", name,
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
