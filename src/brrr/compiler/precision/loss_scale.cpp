#include "brrr/compiler/precision/loss_scale.h"

#include "brrr/compiler/pass_state.h"
#include "brrr/ops/op_list.h"

namespace brrr::compiler {
namespace {

LossScaling kind_of(const PrecisionOptions& options) {
  if (options.loss_scale.kind != LossScaling::automatic) return options.loss_scale.kind;
  bool any_f16 = options.policy == Precision::f16_mixed;
  for (const PrecisionOverride& entry : options.overrides)
    any_f16 |= entry.precision == Precision::f16_mixed;
  return any_f16 ? LossScaling::dynamic : LossScaling::none;
}

}  // namespace

LossScale::LossScale(GraphBuilder& to, const PrecisionOptions& options, BodyPorts* ports,
                     LossScale* around)
    : to_(to),
      options_(options.loss_scale),
      states_(*options.states),
      ports_(ports),
      around_(around),
      kind_(kind_of(options)) {
  check(options_.initial > 0 && options_.growth > 1 && options_.backoff > 0 &&
            options_.backoff < 1 && options_.growth_interval > 0,
        "loss scale: initial ", options_.initial, ", growth ", options_.growth, ", backoff ",
        options_.backoff, ", growth_interval ", options_.growth_interval,
        "; they must be > 0, > 1, between 0 and 1, and > 0");
}

ValueId LossScale::scale() {
  if (scale_.valid()) return scale_;
  if (kind_ == LossScaling::fixed) return scale_ = to_.number(options_.initial);
  const TensorType type{.shape = {}};
  if (around_)
    return scale_ = ports_->give("loss_scale", type, [this] { return around_->scale(); });
  scale_state_ =
      add_pass_state(to_.graph, states_, "loss_scale", type, options_.initial, to_.device());
  good_steps_state_ = add_pass_state(to_.graph, states_, "loss_scale.good_steps",
                                     {.shape = {}, .dtype = DType::i64}, 0, to_.device());
  good_steps_ = to_.graph.states[good_steps_state_].before;
  return scale_ = to_.graph.states[scale_state_].before;
}

ValueId LossScale::inverse() {
  if (inverse_.valid()) return inverse_;
  return inverse_ = kind_ == LossScaling::fixed ? to_.number(1 / options_.initial)
                                                : to_.add(reciprocal_op, {scale()});
}

ValueId LossScale::scale_up(ValueId seed) { return to_.add(mul_op, {seed, scale()}); }

ValueId LossScale::scale_down(ValueId gradient) {
  gradients_.push_back(gradient);
  return to_.add(mul_op, {gradient, inverse()});
}

// The largest magnitude of all gradients: NaN and infinity win, so one reduction each shows both.
void LossScale::finish() {
  if (gradients_.empty()) return;
  ValueIds largest;
  for (ValueId gradient : gradients_)
    largest.push_back(to_.cast(to_.reduce(max_op, to_.add(abs_op, {gradient})), DType::f32));
  const ValueId of_all = to_.reduce(max_op, to_.stack(largest));
  if (around_) {
    return ports_->join_largest("largest gradient", of_all, [this](ValueId of_body) {
      around_->gradients_.push_back(of_body);
    });
  }
  finite_ = to_.add(isfinite_op, {of_all});
  if (kind_ == LossScaling::dynamic) adapt_scale();
}

// finite: one more good step, and when there are enough of them a larger scale; else a smaller one
void LossScale::adapt_scale() {
  const ValueId good = to_.add(add_op, {good_steps_, to_.integer(1)});
  const ValueId grows = to_.add(greater_equal_op, {good, to_.integer(options_.growth_interval)});
  const ValueId zero = to_.integer(0);
  const auto choose = [&](ValueId condition, ValueId a, ValueId b) {
    return to_.add(where_op, {condition, a, b});
  };
  const ValueId larger = to_.add(
      minimum_op,
      {to_.add(mul_op, {scale_, to_.number(options_.growth)}), to_.number(options_.largest)});
  const ValueId smaller = to_.add(
      maximum_op,
      {to_.add(mul_op, {scale_, to_.number(options_.backoff)}), to_.number(options_.smallest)});
  const ValueId kept = choose(grows, larger, scale_), counted = choose(grows, zero, good);
  to_.graph.states[scale_state_].after = choose(finite_, kept, smaller);
  to_.graph.states[good_steps_state_].after = choose(finite_, counted, zero);
}

ValueId LossScale::keep_on_overflow(ValueId before, ValueId after) {
  return finite_.valid() ? to_.add(where_op, {finite_, after, before}) : after;
}

}  // namespace brrr::compiler
