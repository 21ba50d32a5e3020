#include "brrr/train/setup.h"

#include "brrr/base/error.h"
#include "brrr/compiler/head/vocab_padding.h"
#include "brrr/nn/experts.h"

namespace brrr::training {

OptimizerSettings optimizer_settings(const runs::OptimizerConfig& config) {
  return {.weight_decay = config.weight_decay,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .eps = config.eps,
          .bf16_state = config.bf16_state};
}

std::unique_ptr<Optimizer> make_optimizer(const runs::OptimizerConfig& config,
                                          std::vector<NamedTensor> parameters) {
  return make_optimizer(config.name, std::move(parameters), optimizer_settings(config));
}

ScheduleOptions schedule_options(const runs::TrainConfig& config) {
  return {.shape = config.optimizer.schedule,
          .rate = runs::resolved(config.optimizer.lr),
          .steps = runs::resolved(config.train.steps),
          .warmup = runs::resolved(config.optimizer.warmup),
          .final_share = config.optimizer.final_share};
}

CrossEntropyOptions loss_options(const runs::TrainConfig& config) {
  CrossEntropyOptions options{.label_smoothing = config.train.label_smoothing,
                              .soft_cap = config.train.soft_cap,
                              .z_loss = config.train.z_loss};
  if (runs::resolved(config.data.whole_documents)) options.ignore_index = kIgnoredTarget;
  return options;
}

compiler::PipelineOptions pipeline_options(const runs::TrainConfig& config,
                                           const compiler::Target& target) {
  compiler::PipelineOptions options;
  options.precision.policy = config.train.precision;
  options.precision.matmul = config.train.matmul_precision.value_or(
      target.has_tensor_cores() ? compiler::MatmulPrecision::tf32
                                : compiler::MatmulPrecision::ieee);
  for (const std::string& text : config.train.precision_of)
    options.precision.overrides.push_back(compiler::parse_precision_override(text));
  options.remat.policy = config.train.recompute;
  if (config.train.memory_budget_mib)
    options.remat.memory_budget = Bytes(*config.train.memory_budget_mib * (int64_t{1} << 20));
  return config.train.without.empty() ? options : compiler::without(options, config.train.without);
}

int64_t rows_per_step(const runs::TrainConfig& config) {
  return runs::resolved(config.train.batch) * config.train.accumulate;
}

namespace {

std::unique_ptr<Layer> make_classifier(const StepModel& model, Random& random) {
  if (const auto* mlp = std::get_if<MlpConfig>(&model)) return std::make_unique<Mlp>(*mlp, random);
  return std::make_unique<Cnn>(std::get<CnnConfig>(model), random);
}

void keep_expert_share(Module& model, int64_t devices) {
  model.apply([&](const std::string&, Module& part) {
    if (auto* experts = dynamic_cast<Experts*>(&part)) experts->keep_share(devices);
  });
}

}  // namespace

const Module& TrainingParts::trained() const {
  if (model) return *model;
  return *classifier;
}

TrainingParts make_parts(const StepSpec& spec) {
  const DeviceScope scope(spec.tensor_device());
  TrainingParts parts;
  Random random(spec.init_seed);
  TrainStepOptions options{.loss = spec.loss,
                           .accumulate = spec.accumulate,
                           .clip = spec.clip,
                           .activations = spec.activations,
                           .document_mask = spec.document_mask,
                           .guard = spec.guard,
                           .dropout_seed = spec.dropout_seed,
                           .halts = spec.halts,
                           .pipeline = pipeline_of(spec)};
  std::unique_ptr<Objective> objective;
  if (const auto* language = std::get_if<ModelConfig>(&spec.model)) {
    parts.model = make_model(*language, random);
    if (spec.expert_devices > 1) keep_expert_share(*parts.model, spec.expert_devices);
    options.head_rows = compiler::padded_vocab(parts.model->vocab(), spec.pad_vocab, spec.target);
    objective = std::make_unique<TokenLoss>(*parts.model, options.loss, options.head_rows);
  } else {
    parts.classifier = make_classifier(spec.model, random);
    objective = std::make_unique<ClassLoss>(*parts.classifier);
  }
  parts.optimizer = make_optimizer(spec.optimizer, parts.trained().trainable_parameters(),
                                   spec.optimizer_settings);
  if (spec.average > 0)
    parts.average = std::make_unique<WeightAverage>(parts.trained().named_parameters(),
                                                    WeightAverageOptions{.decay = spec.average});
  parts.step = std::make_unique<TrainStep>(std::move(objective), *parts.optimizer,
                                           parts.average.get(), Schedule(spec.schedule), options);
  return parts;
}

TrainingParts make_parts(const runs::TrainConfig& config, const ModelConfig& model,
                         const compiler::Target& target) {
  StepSpec spec = step_spec(config, model, target);
  spec.is_on_paper = default_device() == Device::null();
  return make_parts(spec);
}

}  // namespace brrr::training
