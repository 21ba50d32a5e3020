#include "brrr/optim/momentum.h"

#include "brrr/ops/binary.h"
#include "brrr/ops/unary.h"

namespace brrr {

Sgd::Sgd(std::vector<NamedTensor> parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters), {.weight_decay = options.weight_decay,
                                        .decay = Decay::in_gradient,
                                        .groups = options.groups,
                                        .state_precision = options.state_precision}),
      options_(options) {
  check(!options.nesterov || options.momentum > 0, "sgd: Nesterov's step needs a momentum, not ",
        options.momentum);
  if (options_.momentum != 0) velocity_ = add_state("velocity");
}

std::string_view Sgd::name() const {
  return options_.momentum == 0 ? "sgd" : options_.nesterov ? "nesterov" : "momentum";
}

Tensor Sgd::direction(const Update& u) {
  if (options_.momentum == 0) return u.gradient;
  const Tensor v = write(velocity_, u, read(velocity_, u) * options_.momentum + u.gradient);
  return options_.nesterov ? u.gradient + v * options_.momentum : v;
}

Lion::Lion(std::vector<NamedTensor> parameters, const LionOptions& options)
    : Optimizer(std::move(parameters), {.weight_decay = options.weight_decay,
                                        .groups = options.groups,
                                        .state_precision = options.state_precision}),
      options_(options),
      momentum_(add_state("momentum")) {}

Tensor Lion::direction(const Update& u) {
  const Tensor m = read(momentum_, u);
  write(momentum_, u, m * options_.beta2 + u.gradient * (1 - options_.beta2));
  return sign(m * options_.beta1 + u.gradient * (1 - options_.beta1));
}

}  // namespace brrr
