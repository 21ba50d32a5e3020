// AdaGrad: divides by the root of the sum of all squares that the gradient had.
#pragma once

#include "brrr/optim/registry.h"

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

extern const OptimizerEntry adagrad_entry;

}  // namespace brrr
