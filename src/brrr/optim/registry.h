// The optimizers by name. Training, planning and the command line read this list, so an optimizer is a pair of
// files with its entry, and one line in registry.cpp; from outside the tree register_optimizer takes the entry:
//
//   auto optimizer = make_optimizer("muon", model.trainable_parameters(), {.weight_decay = 0.1});
//   optimizer->state_bytes();     // of parameters on the null device: what it would keep
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/optim/update_rule.h"

namespace brrr {

// Settings that all rules share, as far as they have them. The learning rate is given to every update.
struct OptimizerSettings {
  double weight_decay = 0.1;  // of matrices; norms and biases do not decay
  std::optional<double> beta1, beta2,
      eps;  // open: as the rule has them; beta1 is also the momentum
  bool bf16_state = false;
};

struct OptimizerEntry {
  std::string_view name, help;
  std::unique_ptr<Optimizer> (*make)(std::vector<NamedTensor> parameters,
                                     const OptimizerSettings& settings);
  // What the update computes of a matrix as a whole: devices then share matrices out among them and do not cut them.
  // Empty: every element has an update of its own.
  std::string_view whole_matrices = {};
};

// In the order in which help texts list them.
const std::vector<const OptimizerEntry*>& optimizer_entries();
// Adds one that lives as long as the program. Throws Error on a name that is taken.
void register_optimizer(const OptimizerEntry& entry);
const OptimizerEntry* find_optimizer(std::string_view name);  // nullptr: there is none
std::string optimizer_names();                                // "adamw, adam, ... or adagrad"

// Throws Error with the list on an unknown name.
std::unique_ptr<Optimizer> make_optimizer(std::string_view name,
                                          std::vector<NamedTensor> parameters,
                                          const OptimizerSettings& settings = {});

// The options of a rule with the settings that it has fields for.
template <typename Options>
Options with_settings(Options options, const OptimizerSettings& settings) {
  options.weight_decay = settings.weight_decay;
  options.state_precision =
      settings.bf16_state ? StatePrecision::bf16 : StatePrecision::as_parameter;
  if constexpr (requires { options.groups; }) options.groups = no_decay_of_vectors();
  if constexpr (requires { options.beta1; }) options.beta1 = settings.beta1.value_or(options.beta1);
  if constexpr (requires { options.beta2; }) options.beta2 = settings.beta2.value_or(options.beta2);
  if constexpr (requires { options.eps; }) options.eps = settings.eps.value_or(options.eps);
  return options;
}

}  // namespace brrr
