#include "brrr/optim/adaptive.h"

#include "brrr/ops/binary.h"
#include "brrr/ops/copy.h"
#include "brrr/ops/unary.h"

namespace brrr {
namespace {

template <typename Options>
RuleOptions rule_options(const Options& options, Decay decay) {
  return {.weight_decay = options.weight_decay,
          .decay = decay,
          .groups = options.groups,
          .state_precision = options.state_precision};
}

}  // namespace

AdaGrad::AdaGrad(std::vector<NamedTensor> parameters, const AdaGradOptions& options)
    : Optimizer(std::move(parameters), rule_options(options, Decay::in_gradient)),
      options_(options),
      squares_(add_state("squares")) {}

Tensor AdaGrad::direction(const Update& u) {
  const Tensor s = write(squares_, u, read(squares_, u) + square(u.gradient));
  return u.gradient / sqrt(s + options_.eps);
}

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

// The corrections of the first steps are scalars, computed in f64.
Tensor adam_direction(const Tensor& m, const Tensor& v, const Tensor& step,
                      const MomentRates& rates) {
  const Tensor scale = cast(reciprocal(1.0 - pow(rates.beta1, step)), m.dtype()),
               inverse_root = cast(rsqrt(1.0 - pow(rates.beta2, step)), m.dtype());
  return scale * m / (sqrt(v) * inverse_root + rates.eps);
}

Adam::Adam(std::vector<NamedTensor> parameters, const AdamOptions& options)
    : Adam(std::move(parameters), {options.beta1, options.beta2, options.eps},
           rule_options(options, Decay::in_gradient)) {}

Adam::Adam(std::vector<NamedTensor> parameters, const MomentRates& rates, RuleOptions options)
    : Optimizer(std::move(parameters), std::move(options)), rates_(rates) {
  count_steps();
  first_ = add_state("first");
  second_ = add_state("second");
}

Tensor Adam::direction(const Update& u) {
  const Tensor& g = u.gradient;
  const Tensor m = write(first_, u, read(first_, u) * rates_.beta1 + g * (1 - rates_.beta1));
  const Tensor v =
      write(second_, u, read(second_, u) * rates_.beta2 + square(g) * (1 - rates_.beta2));
  return adam_direction(m, v, u.step, rates_);
}

AdamW::AdamW(std::vector<NamedTensor> parameters, const AdamWOptions& options)
    : Adam(std::move(parameters), {options.beta1, options.beta2, options.eps},
           rule_options(options, Decay::decoupled)) {}

}  // namespace brrr
