// Optimizers. Inside a compiled step their updates fuse with what comes before them, and their states
// are written in place; outside they run as eager ops.
//
//   AdamW optimizer(model.named_parameters(), {.weight_decay = 0.1});
//   auto grads = grad(loss, optimizer.parameters());
//   clip_global_norm(grads, 1.0);
//   optimizer.update(grads, rate);
#pragma once

#include <vector>

#include "brrr/nn/module.h"
#include "brrr/ops/arg.h"

namespace brrr {

class Optimizer {
 public:
  explicit Optimizer(std::vector<NamedTensor> parameters);
  virtual ~Optimizer() = default;

  // One step along the gradients, one for each parameter in order. `rate` is the learning rate: a
  // number, or a tensor of one element (an input of a compiled step).
  virtual void update(const std::vector<Tensor>& grads, const Arg& rate) = 0;

  std::vector<Tensor> parameters() const;
  const std::vector<NamedTensor>& named_parameters() const { return parameters_; }
  const std::vector<NamedTensor>& states() const { return states_; }  // beside the parameters

 protected:
  // A new state, zero at first: "first.wte.weight".
  Tensor add_state(std::string name, const Tensor& like);
  Tensor add_state(std::string name, const Shape& shape, DType dtype);
  void require_match(const std::vector<Tensor>& grads) const;

 private:
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> states_;
};

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;  // added to the gradient
};
// v = momentum v + g;  p -= rate v   (Nesterov: rate (g + momentum v))
class Sgd : public Optimizer {
 public:
  explicit Sgd(std::vector<NamedTensor> parameters, const SgdOptions& options = {});
  void update(const std::vector<Tensor>& grads, const Arg& rate) override;

 private:
  SgdOptions options_;
  std::vector<Tensor> velocity_;
};

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.01;  // of tensors with two axes or more; norms and biases do not decay
};
// m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
// p -= rate (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + weight_decay p)
class AdamW : public Optimizer {
 public:
  explicit AdamW(std::vector<NamedTensor> parameters, const AdamWOptions& options = {});
  void update(const std::vector<Tensor>& grads, const Arg& rate) override;

 private:
  AdamWOptions options_;
  Tensor step_;  // how many updates were made
  std::vector<Tensor> first_, second_;
};

// Scales the gradients so that their common norm is at most `max_norm`; returns the norm before.
Tensor clip_global_norm(std::vector<Tensor>& grads, double max_norm);

}  // namespace brrr
