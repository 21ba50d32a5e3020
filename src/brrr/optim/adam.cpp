#include "brrr/optim/adam.h"

#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"

namespace brrr {

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

// The memory of the second moment is shorter than in the rules' own options: runs are shorter, too.
constexpr double kSecondDecay = 0.99;

constexpr OptimizerEntry adam_entry{
    .name = "adam",
    .help = "averages of the gradient and its square; weight decay in the gradient",
    .make = [](std::vector<NamedTensor> parameters,
               const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
      return std::make_unique<Adam>(std::move(parameters),
                                    with_settings(AdamOptions{.beta2 = kSecondDecay}, settings));
    }};

constexpr OptimizerEntry adamw_entry{
    .name = "adamw",
    .help = "Adam with decoupled weight decay",
    .make = [](std::vector<NamedTensor> parameters,
               const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
      return std::make_unique<AdamW>(std::move(parameters),
                                     with_settings(AdamWOptions{.beta2 = kSecondDecay}, settings));
    }};

}  // namespace brrr
