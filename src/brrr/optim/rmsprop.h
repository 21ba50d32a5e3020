// RMSProp: divides by the root of a moving average of squares.
#pragma once

#include "brrr/optim/registry.h"

namespace brrr {

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

extern const OptimizerEntry rmsprop_entry;

}  // namespace brrr
