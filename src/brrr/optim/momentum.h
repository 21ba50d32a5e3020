// Rules that follow the gradient or its average: SGD with its momenta, and Lion.
#pragma once

#include "brrr/optim/update_rule.h"

namespace brrr {

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;                  // added to the gradient
  std::vector<ParameterGroup> groups = {};  // none: everything decays, as in PyTorch
  StatePrecision state_precision = StatePrecision::as_parameter;
};
// v = momentum v + g;  p -= rate v   (Nesterov: rate (g + momentum v))
class Sgd : public Optimizer {
 public:
  explicit Sgd(std::vector<NamedTensor> parameters, const SgdOptions& options = {});
  std::string_view name() const override;

 protected:
  Tensor direction(const Update& update) override;

 private:
  SgdOptions options_;
  State velocity_;
};

struct LionOptions {
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;  // decoupled
  std::vector<ParameterGroup> groups = no_decay_of_vectors();
  StatePrecision state_precision = StatePrecision::as_parameter;
};
// p -= rate (sign(b1 m + (1 - b1) g) + weight_decay p);  m = b2 m + (1 - b2) g
// Source: Chen et al., "Symbolic discovery of optimization algorithms", arXiv 2302.06675.
class Lion : public Optimizer {
 public:
  explicit Lion(std::vector<NamedTensor> parameters, const LionOptions& options = {});
  std::string_view name() const override { return "lion"; }

 protected:
  Tensor direction(const Update& update) override;

 private:
  LionOptions options_;
  State momentum_;
};

}  // namespace brrr
