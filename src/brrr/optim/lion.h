// Lion: the sign of an average of gradients.
#pragma once

#include "brrr/optim/registry.h"

namespace brrr {

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

extern const OptimizerEntry lion_entry;

}  // namespace brrr
