#include "brrr/optim/lion.h"

#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"

namespace brrr {

Lion::Lion(std::vector<NamedTensor> parameters, const LionOptions& options)
    : Optimizer(std::move(parameters), rule_options(options, Decay::decoupled)),
      options_(options),
      momentum_(add_state("momentum")) {}

Tensor Lion::direction(const Update& u) {
  const Tensor m = read(momentum_, u);
  write(momentum_, u, m * options_.beta2 + u.gradient * (1 - options_.beta2));
  return sign(m * options_.beta1 + u.gradient * (1 - options_.beta1));
}

constexpr OptimizerEntry lion_entry{
    .name = "lion",
    .help = "the sign of an average of gradients",
    .make = [](std::vector<NamedTensor> parameters,
               const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
      return std::make_unique<Lion>(std::move(parameters), with_settings(LionOptions{}, settings));
    }};

}  // namespace brrr
