// SGD with its momenta.
#pragma once

#include "brrr/optim/registry.h"

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

// "sgd" and "momentum" are the same rule: a momentum of 0.9 unless beta1 says otherwise, and with beta1 = 0 none.
extern const OptimizerEntry sgd_entry, momentum_entry, nesterov_entry;

}  // namespace brrr
