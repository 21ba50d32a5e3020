#include "brrr/optim/sgd.h"

#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"

namespace brrr {

Sgd::Sgd(std::vector<NamedTensor> parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters), rule_options(options, Decay::in_gradient)),
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

namespace {

std::unique_ptr<Optimizer> make_sgd(std::vector<NamedTensor> parameters,
                                    const OptimizerSettings& settings, bool nesterov) {
  SgdOptions options = with_settings(SgdOptions{.nesterov = nesterov}, settings);
  options.momentum = settings.beta1.value_or(0.9);
  return std::make_unique<Sgd>(std::move(parameters), options);
}
std::unique_ptr<Optimizer> make_plain(std::vector<NamedTensor> parameters,
                                      const OptimizerSettings& settings) {
  return make_sgd(std::move(parameters), settings, false);
}

}  // namespace

constexpr OptimizerEntry sgd_entry{
    .name = "sgd", .help = "SGD with a momentum of beta1, 0.9 by default", .make = make_plain};
constexpr OptimizerEntry momentum_entry{
    .name = "momentum", .help = "another name of sgd", .make = make_plain};
constexpr OptimizerEntry nesterov_entry{
    .name = "nesterov",
    .help = "SGD with Nesterov's momentum",
    .make = [](std::vector<NamedTensor> parameters, const OptimizerSettings& settings) {
      return make_sgd(std::move(parameters), settings, true);
    }};

}  // namespace brrr
