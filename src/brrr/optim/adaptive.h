// Rules that divide by the size that gradients had: AdaGrad, RMSProp, Adam and AdamW.
#pragma once

#include "brrr/optim/update_rule.h"

namespace brrr {

struct AdaGradOptions {
  double eps = 1e-5;        // inside the root
  double weight_decay = 0;  // added to the gradient
  std::vector<ParameterGroup> groups = {};
  StatePrecision state_precision = StatePrecision::as_parameter;
};
// s += g^2;  p -= rate g / sqrt(s + eps)
class AdaGrad : public Optimizer {
 public:
  explicit AdaGrad(std::vector<NamedTensor> parameters, const AdaGradOptions& options = {});
  std::string_view name() const override { return "adagrad"; }

 protected:
  Tensor direction(const Update& update) override;

 private:
  AdaGradOptions options_;
  State squares_;
};

struct RmsPropOptions {
  double alpha = 0.99, eps = 1e-8;
  double momentum = 0;
  bool centered = false;    // divides by the deviation: g^2 less the square of the average g
  double weight_decay = 0;  // added to the gradient
  std::vector<ParameterGroup> groups = {};
  StatePrecision state_precision = StatePrecision::as_parameter;
};
// s = alpha s + (1 - alpha) g^2;  b = momentum b + g / (sqrt(s) + eps);  p -= rate b
class RmsProp : public Optimizer {
 public:
  explicit RmsProp(std::vector<NamedTensor> parameters, const RmsPropOptions& options = {});
  std::string_view name() const override { return "rmsprop"; }

 protected:
  Tensor direction(const Update& update) override;

 private:
  RmsPropOptions options_;
  State squares_, mean_, velocity_;
};

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

}  // namespace brrr
