// Loss scaling inside the graph. The seed of the backward walk is multiplied by a scale; gradients that
// the update reads are divided by it, and checked: when one is not finite, every state that the update
// writes keeps its old bits.
//
// The body of a repeat is given the scale of the step, and what it finds of its gradients goes into the check
// of the program around it: one scale, one verdict and one new scale a step, for all micro-batches.
#pragma once

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/precision/precision.h"
#include "brrr/compiler/rewrite/body_operands.h"
#include "brrr/compiler/rewrite/graph_builder.h"

namespace brrr::compiler {

class LossScale {
 public:
  // In a body `around` is the scale of the program around it; elsewhere it is null, and so are the ports.
  LossScale(GraphBuilder& to, const PrecisionOptions& options, BodyPorts* ports, LossScale* around);

  bool is_on() const { return kind_ != LossScaling::none; }
  ValueId scale_up(ValueId seed);
  // Remembers the gradient for the check, and returns it at its own size.
  ValueId scale_down(ValueId gradient);

  // Once all gradients are known: whether they are finite, and the scale of the next step. A body hands
  // the largest of its gradients on to the program around it.
  void finish();
  // What a state is after the step: `after`, or `before` when a gradient overflowed.
  ValueId keep_on_overflow(ValueId before, ValueId after);

 private:
  ValueId scale();
  ValueId inverse();
  void adapt_scale();

  GraphBuilder& to_;
  LossScaleOptions options_;
  AddedStates& states_;
  BodyPorts* ports_;
  LossScale* around_;
  LossScaling kind_;
  ValueId scale_, inverse_, good_steps_;
  size_t scale_state_ = 0, good_steps_state_ = 0;
  std::vector<ValueId> gradients_;
  ValueId finite_;
};

}  // namespace brrr::compiler
