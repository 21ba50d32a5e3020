#include "brrr/optim/optimizer.h"

#include "brrr/ops/binary.h"
#include "brrr/ops/copy.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/reduce.h"
#include "brrr/ops/unary.h"

namespace brrr {

Optimizer::Optimizer(std::vector<NamedTensor> parameters) : parameters_(std::move(parameters)) {
  check(!parameters_.empty(), "an optimizer needs at least one parameter");
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> tensors;
  for (const NamedTensor& parameter : parameters_) tensors.push_back(parameter.tensor);
  return tensors;
}

Tensor Optimizer::add_state(std::string name, const Shape& shape, DType dtype) {
  const Tensor state = zeros(shape, {.dtype = dtype});
  state.set_category(Category::optimizer);
  states_.push_back({std::move(name), state});
  return state;
}

Tensor Optimizer::add_state(std::string name, const Tensor& like) {
  return add_state(std::move(name), like.shape(), like.dtype());
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

Sgd::Sgd(std::vector<NamedTensor> parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters)), options_(options) {
  if (options_.momentum == 0) return;
  for (const NamedTensor& p : named_parameters())
    velocity_.push_back(add_state("velocity." + p.name, p.tensor));
}

void Sgd::update(const std::vector<Tensor>& grads, const Arg& rate) {
  NoGrad update_only;
  require_match(grads);
  name_states(named_parameters());
  name_states(states());
  for (size_t i = 0; i < grads.size(); ++i) {
    const Tensor& p = named_parameters()[i].tensor;
    Tensor g = options_.weight_decay == 0 ? grads[i] : grads[i] + p * options_.weight_decay;
    if (options_.momentum != 0) {
      const Tensor& v = velocity_[i];
      v.copy_from(v * options_.momentum + g);
      g = options_.nesterov ? g + v * options_.momentum : v;
    }
    p.copy_from(p - rate * g);
  }
}

AdamW::AdamW(std::vector<NamedTensor> parameters, const AdamWOptions& options)
    : Optimizer(std::move(parameters)), options_(options) {
  step_ = add_state("step", {}, DType::f64);
  for (const NamedTensor& p : named_parameters()) {
    first_.push_back(add_state("first." + p.name, p.tensor));
    second_.push_back(add_state("second." + p.name, p.tensor));
  }
}

// The corrections of the first steps are scalars, computed once in f64.
void AdamW::update(const std::vector<Tensor>& grads, const Arg& rate) {
  NoGrad update_only;
  require_match(grads);
  name_states(named_parameters());
  name_states(states());
  step_.copy_from(step_ + 1.0);
  const Tensor first_share = 1.0 - pow(options_.beta1, step_),
               second_share = 1.0 - pow(options_.beta2, step_);
  const Tensor scale = cast(rate / first_share, DType::f32),
               inverse_root = cast(rsqrt(second_share), DType::f32);
  for (size_t i = 0; i < grads.size(); ++i) {
    const Tensor &p = named_parameters()[i].tensor, &m = first_[i], &v = second_[i], &g = grads[i];
    m.copy_from(m * options_.beta1 + g * (1 - options_.beta1));
    v.copy_from(v * options_.beta2 + square(g) * (1 - options_.beta2));
    Tensor change = scale * m / (sqrt(v) * inverse_root + options_.eps);
    if (options_.weight_decay != 0 && p.rank() >= 2)
      change = change + p * (rate * options_.weight_decay);
    p.copy_from(p - change);
  }
}

Tensor clip_global_norm(std::vector<Tensor>& grads, double max_norm) {
  NoGrad update_only;
  check(max_norm > 0, "clip_global_norm: the largest norm must be positive, not ", max_norm);
  Tensor total;
  for (const Tensor& g : grads) {
    const Tensor part = sum(square(g));
    total = total.defined() ? total + part : part;
  }
  const Tensor norm = sqrt(total);
  const Tensor scale = minimum(max_norm / (norm + 1e-6), 1.0);
  for (Tensor& g : grads) g = g * scale;
  return norm;
}

}  // namespace brrr
