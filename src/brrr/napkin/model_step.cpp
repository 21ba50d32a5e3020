#include "brrr/napkin/model_step.h"

#include <algorithm>
#include <functional>

#include "brrr/autodiff/grad.h"
#include "brrr/device/default_device.h"
#include "brrr/graph/trace.h"
#include "brrr/nn/classifiers.h"
#include "brrr/ops/copy.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/cross_entropy.h"
#include "brrr/optim/optimizer.h"
#include "brrr/train/parts.h"
#include "brrr/train/vocab_padding.h"

namespace brrr {
namespace {

constexpr int64_t kMlpWidth = 512, kClasses = 10;
constexpr int64_t kSide = 28;  // pixels

// The preset of this name with the sizes of the options.
ModelConfig config_of(std::string_view name, const StepOptions& options) {
  ModelConfig config = model_preset(name == "char-gpt" ? "gpt2-char" : name);
  check(!options.heads || config.has("heads"), name, " is recurrent and has no heads to change");
  if (options.layers) config.set("layers", *options.layers);
  if (options.width) config.set("width", *options.width);
  if (options.vocab) config.set("vocab", *options.vocab);
  if (options.heads) config.set("heads", *options.heads);
  config.set("context", std::max(context_of(config), options.seq));
  return config;
}

void require_rows(const StepOptions& options) {
  check(options.batch >= 1 && options.seq >= 1, "a batch of ", options.batch, " x ", options.seq,
        " is empty; use at least 1");
}

// Fixed ids below `count`; on the null device their type alone.
Tensor make_ids(const Shape& shape, int64_t count, uint32_t draw) {
  CategoryScope scope(Category::data);
  return randint(shape, RandomKey{.seed = 1, .stream = 1, .draw = draw}, 0, count,
                 {.dtype = DType::i64, .device = default_device()});
}

}  // namespace

std::vector<std::string> step_models() {
  std::vector<std::string> names;
  for (std::string_view name : model_presets()) names.emplace_back(name);
  for (const char* name : {"char-gpt", "mlp", "cnn"}) names.emplace_back(name);
  return names;
}

struct ModelStep::State {
  Random random{1};
  std::unique_ptr<Module> model;
  std::function<Tensor(const Tensor&, const Tensor&)> loss;
  std::unique_ptr<Optimizer> optimizer;
  Tensor data, targets, rate;
  std::vector<Tensor> inputs;
  std::unique_ptr<CompiledFunction> compiled;

  // Images of 28 x 28 pixels, ten classes: no attention, no embedding, no norm.
  void make_classifier(std::unique_ptr<Layer> net, const StepOptions& options) {
    CategoryScope scope(Category::data);
    data = uniform({options.batch, 1, kSide, kSide}, RandomKey{.seed = 1});
    targets = make_ids({options.batch}, kClasses, 0);
    loss = [layer = net.get()](const Tensor& x, const Tensor& y) {
      return cross_entropy((*layer)(x), y);
    };
    model = std::move(net);
  }
  void make_classifier(std::string_view name, const StepOptions& options) {
    check(!options.layers && !options.heads && !options.vocab, name,
          " has neither layers, heads nor a vocabulary to change");
    check(!options.width || name != "cnn", "cnn has no width to change");
    if (name == "cnn") {
      make_classifier(std::make_unique<Cnn>(CnnConfig{}, random), options);
      return;
    }
    const int64_t width = options.width.value_or(kMlpWidth);
    make_classifier(std::make_unique<Mlp>(MlpConfig{.hidden = {width, width}}, random), options);
  }

  void make_language_model(const ModelConfig& config, const StepOptions& options) {
    std::unique_ptr<LanguageModel> net = make_model(config, random);
    data = make_ids({options.batch, options.seq}, vocab_of(config), 0);
    targets = make_ids({options.batch, options.seq}, vocab_of(config), 1);
    // As `brrr train` runs it on that device.
    const int64_t head_rows =
        padded_vocab(vocab_of(config), "auto", options.pipeline.device.value_or(options.device));
    loss = [language = net.get(), head_rows](const Tensor& x, const Tensor& y) {
      return language->losses(x, y, {}, {}, head_rows).total;
    };
    model = std::move(net);
  }

  Tensors step(std::span<const Tensor> x) const {
    const Tensor result = loss(x[0], x[1]);
    std::vector<Tensor> grads = grad(result, optimizer->parameters());
    clip_global_norm(grads, 1.0);
    optimizer->update(grads, x[2]);
    return {result.detach()};
  }

  Graph trace(std::span<const Tensor> given, const CompiledFunction::Function& function) const {
    Tracer tracer;
    constexpr const char* kNames[] = {"data", "targets", "rate"};
    std::vector<Tensor> handles;
    for (const Tensor& x : given)
      handles.push_back(tracer.add_input(x.type(), x.device(), kNames[handles.size()]));
    const Tensors results = function(handles);
    name_states(model->named_parameters());
    return tracer.finish(results);
  }
};

ModelStep::ModelStep(std::string_view name, const StepOptions& options)
    : state_(std::make_unique<State>()) {
  const std::vector<std::string> known = step_models();
  std::string list;
  for (const std::string& model : known) list += join_text(list.empty() ? "" : ", ", model);
  check(std::find(known.begin(), known.end(), name) != known.end(), "there is no model named \"",
        name, "\"; use one of ", list);
  require_rows(options);
  const DeviceScope scope(options.device);
  if (name == "mlp" || name == "cnn") {
    state_->make_classifier(name, options);
  } else {
    state_->make_language_model(config_of(name, options), options);
  }
  finish(options);
}

ModelStep::ModelStep(const ModelConfig& config, const StepOptions& options)
    : state_(std::make_unique<State>()) {
  require_rows(options);
  const DeviceScope scope(options.device);
  state_->make_language_model(config, options);
  finish(options);
}

void ModelStep::finish(const StepOptions& options) {
  State& s = *state_;
  s.optimizer = make_optimizer({.name = options.optimizer}, s.model->named_parameters());
  s.rate = full({}, 1e-4);
  s.inputs = {s.data, s.targets, s.rate};
  s.compiled = std::make_unique<CompiledFunction>(
      [&s](std::span<const Tensor> x) { return s.step(x); }, options.pipeline);
}
ModelStep::~ModelStep() = default;

int64_t ModelStep::parameter_count() const { return state_->model->parameter_count(); }

std::vector<NamedTensor> ModelStep::named_parameters() const {
  return state_->model->named_parameters();
}

Graph ModelStep::trace_forward() const {
  NoGrad forward_only;
  return state_->trace(std::span(state_->inputs).first(2), [&](std::span<const Tensor> x) {
    return Tensors{state_->loss(x[0], x[1])};
  });
}

Graph ModelStep::trace_step() const {
  return state_->trace(state_->inputs, [&](std::span<const Tensor> x) { return state_->step(x); });
}

Executable& ModelStep::executable() { return state_->compiled->executable(state_->inputs); }
std::span<const Tensor> ModelStep::inputs() const { return state_->inputs; }
Tensors ModelStep::run_eager() const { return state_->step(state_->inputs); }

}  // namespace brrr
