#include "brrr/optim/adagrad.h"

#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"

namespace brrr {

AdaGrad::AdaGrad(std::vector<NamedTensor> parameters, const AdaGradOptions& options)
    : Optimizer(std::move(parameters), rule_options(options, Decay::in_gradient)),
      options_(options),
      squares_(add_state("squares")) {}

Tensor AdaGrad::direction(const Update& u) {
  const Tensor s = write(squares_, u, read(squares_, u) + square(u.gradient));
  return u.gradient / sqrt(s + options_.eps);
}

constexpr OptimizerEntry adagrad_entry{
    .name = "adagrad",
    .help = "divides by the root of all squares so far",
    .make = [](std::vector<NamedTensor> parameters,
               const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
      return std::make_unique<AdaGrad>(std::move(parameters),
                                       with_settings(AdaGradOptions{}, settings));
    }};

}  // namespace brrr
