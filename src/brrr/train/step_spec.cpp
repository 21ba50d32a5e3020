#include "brrr/train/step_spec.h"

#include <algorithm>

#include "brrr/base/join_names.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/random/random.h"
#include "brrr/train/setup.h"

namespace brrr::training {
namespace {

constexpr int64_t kMlpWidth = 512, kClasses = 10;
constexpr int64_t kSide = 28;  // pixels

// The preset of this name with other sizes.
ModelConfig resized_preset(std::string_view name, const StepSizes& sizes) {
  ModelConfig config = model_preset(name == "char-gpt" ? "gpt2-char" : name);
  const ModelShape shape = shape_of(config);
  check(!sizes.heads || shape.heads > 0, name, " is recurrent and has no heads to change");
  if (sizes.layers) config.set("layers", *sizes.layers);
  if (sizes.width) config.set("width", *sizes.width);
  if (sizes.vocab) config.set("vocab", *sizes.vocab);
  if (sizes.heads) config.set("heads", *sizes.heads);
  config.set("context", std::max(shape.context, sizes.seq));
  return config;
}

StepModel find_classifier(std::string_view name, const StepSizes& sizes) {
  check(!sizes.layers && !sizes.heads && !sizes.vocab, name,
        " has neither layers, heads nor a vocabulary to change");
  check(!sizes.width || name != "cnn", "cnn has no width to change");
  if (name == "cnn") return CnnConfig{.height = kSide, .width = kSide, .outputs = kClasses};
  const int64_t width = sizes.width.value_or(kMlpWidth);
  return MlpConfig{.inputs = kSide * kSide, .hidden = {width, width}, .outputs = kClasses};
}

// Fixed ids below `count`; on the null device their type alone.
Tensor make_ids(const Shape& shape, int64_t count, uint32_t draw, Device device) {
  return randint(shape, RandomKey{.seed = 1, .stream = 1, .draw = draw}, 0, count,
                 {.dtype = DType::i64, .device = device});
}

}  // namespace

StepSpec on_paper(StepSpec spec) {
  spec.is_on_paper = true;
  return spec;
}

StepSpec step_spec(const runs::TrainConfig& config, const StepModel& model,
                   const compiler::Target& target) {
  const runs::OptimizerConfig& optimizer = config.optimizer;
  return {.model = model,
          .batch = runs::resolved(config.train.batch),
          .context = runs::resolved(config.model.context),
          .accumulate = config.train.accumulate,
          .loss = loss_options(config),
          .document_mask = runs::resolved(config.data.document_mask),
          .activations = config.report.activations_every > 0,
          .halts = config.guard.action == runs::GuardAction::stop,
          .optimizer = optimizer.name,
          .optimizer_settings = optimizer_settings(optimizer),
          .schedule = schedule_options(config),
          .clip = optimizer.clip,
          .average = optimizer.average,
          .pad_vocab = config.train.pad_vocab,
          .pipeline = pipeline_options(config, target),
          .init_seed = config.seed_of(config.seed.init),
          .dropout_seed = config.seed_of(config.seed.dropout),
          .target = target};
}

runs::TrainConfig default_step_settings(int64_t batch, int64_t context) {
  check(batch >= 1 && context >= 1, "a batch of ", batch, " x ", context,
        " is empty; use at least 1");
  runs::TrainConfig config;
  config.train.batch = batch;
  config.model.context = context;
  config.train.steps = 1000;
  config.optimizer.warmup = 50;
  config.optimizer.lr = 1e-4;
  config.data.whole_documents = false;
  config.data.document_mask = false;
  return config;
}

std::vector<std::string> step_models() {
  std::vector<std::string> names;
  for (std::string_view name : model_presets()) names.emplace_back(name);
  for (const char* name : {"char-gpt", "mlp", "cnn"}) names.emplace_back(name);
  return names;
}

StepModel find_step_model(std::string_view name, const StepSizes& sizes) {
  const std::vector<std::string> known = step_models();
  check(std::find(known.begin(), known.end(), name) != known.end(), "there is no model named \"",
        name, "\"; use one of ", join_names(known));
  if (name == "mlp" || name == "cnn") return find_classifier(name, sizes);
  return resized_preset(name, sizes);
}

StepSpec default_step(const StepModel& model, int64_t batch, int64_t context,
                      const compiler::Target& target) {
  return step_spec(default_step_settings(batch, context), model, target);
}

StepSpec named_step(std::string_view name, const StepSizes& sizes, const compiler::Target& target) {
  return default_step(find_step_model(name, sizes), sizes.batch, sizes.seq, target);
}

compiler::PipelineOptions pipeline_of(const StepSpec& spec) {
  compiler::PipelineOptions options = spec.pipeline;
  if (!spec.is_on_paper) return options;  // a run follows its tensors
  options.device = Device::null();
  options.target = spec.target;
  return options;
}

Batch make_batch(const StepSpec& spec) {
  CategoryScope scope(Category::data);
  const Device device = spec.is_on_paper ? Device::null() : Device::cpu();
  const int64_t rows = spec.batch * spec.accumulate;
  const auto* language = std::get_if<ModelConfig>(&spec.model);
  if (language == nullptr)
    return {
        .step = 0,
        .inputs = uniform({rows, 1, kSide, kSide}, RandomKey{.seed = 1}, {}, {.device = device}),
        .targets = make_ids({rows}, kClasses, 0, device),
        .documents = {}};
  const Shape shape{rows, spec.context};
  const TensorOptions whole{.dtype = DType::i64, .device = device};
  return {.step = 0,
          .inputs = make_ids(shape, vocab_of(*language), 0, device),
          .targets = make_ids(shape, vocab_of(*language), 1, device),
          .documents = spec.document_mask ? zeros(shape, whole) : Tensor()};
}

graph::Graph trace_step(const StepSpec& spec) {
  invariant(spec.is_on_paper, "a step is planned on paper");
  return make_parts(spec).step->trace(make_batch(spec));
}

runtime::PlannedProgram plan_step(const StepSpec& spec) {
  return runtime::plan_program(trace_step(spec), pipeline_of(spec));
}

}  // namespace brrr::training
