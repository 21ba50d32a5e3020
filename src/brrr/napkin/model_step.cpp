#include "brrr/napkin/model_step.h"

#include <algorithm>
#include <functional>

#include "brrr/autodiff/grad.h"
#include "brrr/device/default_device.h"
#include "brrr/graph/trace.h"
#include "brrr/nn/gpt2.h"
#include "brrr/ops/copy.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/cross_entropy.h"
#include "brrr/ops/unary.h"
#include "brrr/optim/optimizer.h"

namespace brrr {
namespace {

// Images of 784 pixels, three layers, ten classes: no attention, no embedding, no norm.
class Mlp : public Module {
 public:
  Mlp(int64_t width, Random& random)
      : first_(kPixels, width, random),
        second_(width, width, random),
        head_(width, kClasses, random) {
    add_module("first", first_);
    add_module("second", second_);
    add_module("head", head_);
  }
  Tensor loss(const Tensor& pixels, const Tensor& classes) const {
    return cross_entropy(head_(relu(second_(relu(first_(pixels))))), classes);
  }
  static constexpr int64_t kPixels = 784, kClasses = 10;

 private:
  Linear first_, second_, head_;
};

constexpr std::string_view kGptPresets[] = {"gpt2-tiny", "gpt2-124m", "gpt2-350m", "gpt2-774m",
                                            "gpt2-1558m"};
constexpr Gpt2Config kCharGpt{.vocab = 65, .context = 256, .layers = 6, .heads = 6, .width = 384};
constexpr int64_t kMlpWidth = 512;

Gpt2Config config_of(std::string_view name, const StepOptions& options) {
  Gpt2Config config = name == "char-gpt" ? kCharGpt : gpt2_preset(name);
  config.layers = options.layers.value_or(config.layers);
  config.heads = options.heads.value_or(config.heads);
  config.width = options.width.value_or(config.width);
  config.vocab = options.vocab.value_or(config.vocab);
  config.context = std::max(config.context, options.seq);
  return config;
}

// Fixed ids below `count`; on the null device their type alone.
Tensor make_ids(const Shape& shape, int64_t count, uint32_t draw) {
  CategoryScope scope(Category::data);
  return randint(shape, RandomKey{.seed = 1, .stream = 1, .draw = draw}, 0, count,
                 {.dtype = DType::i64, .device = default_device()});
}

}  // namespace

std::vector<std::string> step_models() {
  std::vector<std::string> names(std::begin(kGptPresets), std::end(kGptPresets));
  for (const char* name : {"char-gpt", "mlp"}) names.emplace_back(name);
  return names;
}

struct ModelStep::State {
  Random random{1};
  std::unique_ptr<Module> model;
  std::function<Tensor(const Tensor&, const Tensor&)> loss;
  std::unique_ptr<AdamW> optimizer;
  Tensor data, targets, rate;
  std::vector<Tensor> inputs;
  std::unique_ptr<CompiledFunction> compiled;

  void make_mlp(const StepOptions& options) {
    auto mlp = std::make_unique<Mlp>(options.width.value_or(kMlpWidth), random);
    CategoryScope scope(Category::data);
    data = uniform({options.batch, Mlp::kPixels}, RandomKey{.seed = 1});
    targets = make_ids({options.batch}, Mlp::kClasses, 0);
    loss = [net = mlp.get()](const Tensor& x, const Tensor& y) { return net->loss(x, y); };
    model = std::move(mlp);
  }

  void make_gpt(std::string_view name, const StepOptions& options) {
    const Gpt2Config config = config_of(name, options);
    auto gpt = std::make_unique<Gpt2>(config, random);
    data = make_ids({options.batch, options.seq}, config.vocab, 0);
    targets = make_ids({options.batch, options.seq}, config.vocab, 1);
    loss = [net = gpt.get()](const Tensor& x, const Tensor& y) { return net->loss(x, y); };
    model = std::move(gpt);
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
  check(options.batch >= 1 && options.seq >= 1, "a batch of ", options.batch, " x ", options.seq,
        " is empty; use at least 1");
  const DeviceScope scope(options.device);
  State& s = *state_;
  name == "mlp" ? s.make_mlp(options) : s.make_gpt(name, options);
  s.optimizer = std::make_unique<AdamW>(s.model->named_parameters());
  s.rate = full({}, 1e-4);
  s.inputs = {s.data, s.targets, s.rate};
  s.compiled = std::make_unique<CompiledFunction>(
      [&s](std::span<const Tensor> x) { return s.step(x); }, options.pipeline);
}
ModelStep::~ModelStep() = default;

int64_t ModelStep::parameter_count() const { return state_->model->parameter_count(); }

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
