// Adam and AdamW: averages of the gradient and of its square.
#pragma once

#include "brrr/optim/registry.h"

namespace brrr {

struct MomentRates {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};
// m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps), for moments that include this step's gradient.
Tensor adam_direction(const Tensor& m, const Tensor& v, const Tensor& step,
                      const MomentRates& rates);

// m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  p -= rate adam_direction(m, v)
struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;  // added to the gradient
  std::vector<ParameterGroup> groups = {};
  StatePrecision state_precision = StatePrecision::as_parameter;
};
class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<NamedTensor> parameters, const AdamOptions& options = {});
  std::string_view name() const override { return "adam"; }

 protected:
  Adam(std::vector<NamedTensor> parameters, const MomentRates& rates, RuleOptions options);
  Tensor direction(const Update& update) override;

 private:
  MomentRates rates_;
  State first_, second_;
};

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.01;  // decoupled
  std::vector<ParameterGroup> groups = no_decay_of_vectors();
  StatePrecision state_precision = StatePrecision::as_parameter;
};
// p -= rate (adam_direction(m, v) + weight_decay p)
class AdamW : public Adam {
 public:
  explicit AdamW(std::vector<NamedTensor> parameters, const AdamWOptions& options = {});
  std::string_view name() const override { return "adamw"; }
};

extern const OptimizerEntry adam_entry, adamw_entry;

}  // namespace brrr
