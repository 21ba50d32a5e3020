// What all optimizers share: parameters in groups, named states, weight decay and the write into the
// parameters. A rule is a class with one function of a parameter and its gradient, made of ops. Inside
// a compiled step it fuses with what comes before it and its states are written in place; outside it
// runs as eager ops, with the same bits.
//
//   class SignOfMomentum : public Optimizer {
//    public:
//     explicit SignOfMomentum(std::vector<NamedTensor> parameters)
//         : Optimizer(std::move(parameters)), velocity_(add_state("velocity")) {}
//     std::string_view name() const override { return "sign of momentum"; }
//
//    protected:
//     Tensor direction(const Update& u) override {
//       return sign(write(velocity_, u, 0.9 * read(velocity_, u) + u.gradient));
//     }
//
//    private:
//     State velocity_;
//   };
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "brrr/nn/module.h"
#include "brrr/ops/elementwise/arg.h"

namespace brrr {

// Settings for some of the parameters. A parameter belongs to the first group that holds it; without
// one it has the settings of the optimizer.
struct ParameterGroup {
  std::string name;
  std::function<bool(const NamedTensor&)> holds;
  double rate_scale = 1;                    // times the learning rate
  std::optional<double> weight_decay = {};  // in place of the optimizer's
};
// Norms and biases, all tensors with fewer than two axes, do not decay.
std::vector<ParameterGroup> no_decay_of_vectors();

enum class Decay : uint8_t {
  decoupled,   // p -= rate (direction + decay p)
  in_gradient  // g += decay p, before the rule sees it
};
enum class StatePrecision : uint8_t {
  as_parameter,
  bf16  // rounded up or down by chance, so that changes below half a bit are not lost on average
};

struct RuleOptions {
  double weight_decay = 0;
  Decay decay = Decay::decoupled;
  std::vector<ParameterGroup> groups = no_decay_of_vectors();
  StatePrecision state_precision = StatePrecision::as_parameter;
};

// Those of a rule's own options, which have fields of these names.
template <typename Options>
RuleOptions rule_options(const Options& options, Decay decay) {
  return {.weight_decay = options.weight_decay,
          .decay = decay,
          .groups = options.groups,
          .state_precision = options.state_precision};
}

class Optimizer {
 public:
  explicit Optimizer(std::vector<NamedTensor> parameters, RuleOptions options = {});
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // One step along the gradients, one for each parameter in order. `rate` is the learning rate: a
  // number, or a tensor of one element (an input of a compiled step, or schedule.at(step)). `applies`,
  // where given, is one bool: false keeps every parameter and state as it is. It is a choice between
  // values that are in registers anyway, so a guarded step touches no more memory than any other.
  void update(const std::vector<Tensor>& grads, const Arg& rate, const Tensor& applies = {});
  // Drops the gradients that backward() has left with the parameters, and frees their bytes.
  void zero_grad() const;

  virtual std::string_view name() const = 0;
  std::vector<Tensor> parameters() const;
  const std::vector<NamedTensor>& named_parameters() const { return parameters_; }

  // What a checkpoint keeps beside the parameters: "step", "first.wte.weight", ...
  const std::vector<NamedTensor>& states() const { return states_; }
  void load_states(const std::vector<NamedTensor>& values, const LoadOptions& options = {});
  Bytes state_bytes() const;
  // Of them what belongs to one parameter, by its place in named_parameters().
  Bytes state_bytes_of(size_t parameter) const { return parameter_state_bytes_[parameter]; }

  // How the parameters are dealt with, for people: one line a group that has members.
  struct GroupSummary {
    std::string name;  // "all others" for those in no group
    int64_t tensors = 0, elements = 0;
    double rate_scale = 1, weight_decay = 0;
  };
  std::vector<GroupSummary> groups() const;

 protected:
  // One parameter in one step. The gradient has the dtype of the parameter.
  struct Update {
    size_t index;
    const Tensor& parameter;
    const Tensor& gradient;
    const Tensor& step;  // f64 []: 1 in the first update; undefined unless count_steps() was called
  };
  // The rule: what is subtracted from the parameter, for a learning rate of 1.
  virtual Tensor direction(const Update& update) = 0;

  // One tensor of zeros for each parameter, of its shape, named "velocity.wte.weight".
  struct State {
    std::vector<Tensor> tensors;
    std::vector<int64_t> sites;  // tells apart the chances by which they are rounded
  };
  State add_state(std::string_view name,
                  const std::function<bool(const NamedTensor&)>& wanted = nullptr);
  // The value before this update, in the dtype of the parameter.
  Tensor read(const State& state, const Update& update) const;
  // Gives the state its next value and returns that, not rounded. It is stored when the rule is through,
  // so that what `read` returned stays what it was.
  Tensor write(const State& state, const Update& update, const Tensor& value);
  // Rules that need the number of the step ask for it in their constructor.
  void count_steps();

 private:
  struct Settings {
    int group;  // -1: none
    double rate_scale, weight_decay;
  };
  void require_match(const std::vector<Tensor>& grads) const;
  Tensor new_state(std::string name, const Shape& shape, DType dtype, Device device);

  std::vector<NamedTensor> parameters_;
  RuleOptions options_;
  std::vector<Settings> settings_;
  std::vector<NamedTensor> states_;
  std::vector<Bytes> parameter_state_bytes_;
  Tensor step_;
  struct Write {
    Tensor target, value;
  };
  std::vector<Write> writes_;  // of the parameter that is being updated
};

}  // namespace brrr
