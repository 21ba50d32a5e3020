#include "brrr/optim/rmsprop.h"

#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"

namespace brrr {

RmsProp::RmsProp(std::vector<NamedTensor> parameters, const RmsPropOptions& options)
    : Optimizer(std::move(parameters), rule_options(options, Decay::in_gradient)),
      options_(options),
      squares_(add_state("squares")) {
  if (options_.centered) mean_ = add_state("mean");
  if (options_.momentum != 0) velocity_ = add_state("velocity");
}

Tensor RmsProp::direction(const Update& u) {
  const Tensor& g = u.gradient;
  const auto average = [&](const State& state, const Tensor& value) {
    return write(state, u, read(state, u) * options_.alpha + value * (1 - options_.alpha));
  };
  Tensor s = average(squares_, square(g));
  if (options_.centered) s = s - square(average(mean_, g));
  Tensor step = g / (sqrt(s) + options_.eps);
  if (options_.momentum == 0) return step;
  return write(velocity_, u, read(velocity_, u) * options_.momentum + step);
}

constexpr OptimizerEntry rmsprop_entry{
    .name = "rmsprop",
    .help = "divides by the root of a moving average of squares; beta2 is its decay",
    .make = [](std::vector<NamedTensor> parameters,
               const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
      RmsPropOptions options = with_settings(RmsPropOptions{}, settings);
      options.alpha = settings.beta2.value_or(options.alpha);
      return std::make_unique<RmsProp>(std::move(parameters), options);
    }};

}  // namespace brrr
