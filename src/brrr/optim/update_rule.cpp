#include "brrr/optim/update_rule.h"

#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/optim/stochastic_round.h"

namespace brrr {

std::vector<ParameterGroup> no_decay_of_vectors() {
  return {{.name = "norms and biases",
           .holds = [](const NamedTensor& named) { return named.tensor.rank() < 2; },
           .weight_decay = 0.0}};
}

Optimizer::Optimizer(std::vector<NamedTensor> parameters, RuleOptions options)
    : parameters_(std::move(parameters)), options_(std::move(options)) {
  check(!parameters_.empty(), "an optimizer needs at least one parameter");
  parameter_state_bytes_.resize(parameters_.size());
  for (const NamedTensor& parameter : parameters_) {
    Settings settings{.group = -1, .rate_scale = 1, .weight_decay = options_.weight_decay};
    for (size_t g = 0; g < options_.groups.size() && settings.group < 0; ++g) {
      const ParameterGroup& group = options_.groups[g];
      if (!group.holds(parameter)) continue;
      settings = {.group = static_cast<int>(g),
                  .rate_scale = group.rate_scale,
                  .weight_decay = group.weight_decay.value_or(options_.weight_decay)};
    }
    settings_.push_back(settings);
  }
  if (options_.state_precision == StatePrecision::bf16) count_steps();
}

void Optimizer::zero_grad() const {
  for (const NamedTensor& parameter : parameters_) parameter.tensor.clear_grad();
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> tensors;
  for (const NamedTensor& parameter : parameters_) tensors.push_back(parameter.tensor);
  return tensors;
}

Tensor Optimizer::new_state(std::string name, const Shape& shape, DType dtype, Device device) {
  Tensor state = zeros(shape, {.dtype = dtype, .device = device});
  state.set_category(Category::optimizer);
  states_.push_back({std::move(name), state});
  return state;
}

void Optimizer::count_steps() {
  if (!step_.defined())
    step_ = new_state("step", {}, DType::f64, parameters_.front().tensor.device());
}

Optimizer::State Optimizer::add_state(std::string_view name,
                                      const std::function<bool(const NamedTensor&)>& wanted) {
  State state;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const NamedTensor& parameter = parameters_[i];
    const Tensor& p = parameter.tensor;
    const bool narrow = options_.state_precision == StatePrecision::bf16;
    state.sites.push_back(static_cast<int64_t>(states_.size()));
    state.tensors.push_back(wanted && !wanted(parameter)
                                ? Tensor()
                                : new_state(join_text(name, ".", parameter.name), p.shape(),
                                            narrow ? DType::bf16 : p.dtype(), p.device()));
    if (state.tensors.back().defined()) parameter_state_bytes_[i] += state.tensors.back().bytes();
  }
  return state;
}

Tensor Optimizer::read(const State& state, const Update& update) const {
  return cast(state.tensors[update.index], update.parameter.dtype());
}

Tensor Optimizer::write(const State& state, const Update& update, const Tensor& value) {
  const Tensor& target = state.tensors[update.index];
  writes_.push_back({target, target.dtype() == value.dtype()
                                 ? value
                                 : round_by_chance(value, step_, state.sites[update.index])});
  return value;
}

void Optimizer::require_match(const std::vector<Tensor>& grads) const {
  check(grads.size() == parameters_.size(), "update: ", grads.size(), " gradients for ",
        parameters_.size(), " parameters");
  for (size_t i = 0; i < grads.size(); ++i) {
    check(grads[i].shape() == parameters_[i].tensor.shape(), "update: the gradient of ",
          parameters_[i].name, " is ", describe(grads[i]), " and the parameter ",
          describe(parameters_[i].tensor));
  }
}

void Optimizer::update(const std::vector<Tensor>& grads, const Arg& rate, const Tensor& applies) {
  NoGrad update_only;
  require_match(grads);
  const auto set = [&](const Tensor& target, const Tensor& value) {
    target.copy_from(applies.defined() ? where(applies, value, target) : value);
  };
  name_states(parameters_);
  name_states(states_);
  writes_.clear();  // of a rule that threw
  if (step_.defined()) set(step_, step_ + 1.0);
  const Tensor base_rate = rate.on(parameters_.front().tensor.device());
  for (size_t i = 0; i < grads.size(); ++i) {
    const Tensor& p = parameters_[i].tensor;
    const double decay = settings_[i].weight_decay, scale = settings_[i].rate_scale;
    Tensor g = cast(grads[i], p.dtype());
    if (decay != 0 && options_.decay == Decay::in_gradient) g = g + p * decay;
    Tensor change = direction({.index = i, .parameter = p, .gradient = g, .step = step_});
    if (decay != 0 && options_.decay == Decay::decoupled) change = change + p * decay;
    if (scale != 1) change = change * scale;
    set(p, p - base_rate * change);
    for (const Write& write : writes_) set(write.target, write.value);
    writes_.clear();
  }
}

void Optimizer::load_states(const std::vector<NamedTensor>& values, const LoadOptions& options) {
  load_tensors(states_, values, options);
}

Bytes Optimizer::state_bytes() const {
  Bytes total;
  for (const NamedTensor& state : states_) total += state.tensor.bytes();
  return total;
}

std::vector<Optimizer::GroupSummary> Optimizer::groups() const {
  std::vector<GroupSummary> found;
  for (int group = -1; group < static_cast<int>(options_.groups.size()); ++group) {
    GroupSummary summary;
    summary.name = group < 0 ? "all others" : options_.groups[static_cast<size_t>(group)].name;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (settings_[i].group != group) continue;
      summary.tensors += 1;
      summary.elements += parameters_[i].tensor.numel();
      summary.rate_scale = settings_[i].rate_scale;
      summary.weight_decay = settings_[i].weight_decay;
    }
    if (summary.tensors > 0) found.push_back(std::move(summary));
  }
  return found;
}

}  // namespace brrr
