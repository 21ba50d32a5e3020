// The rewrite behind apply_precision. Every f32 value of the old program exists in the new one in the forms
// that its readers take it in, each made once: as it is stored, and casts of that. Views are made for a form
// when it is asked for, over the same form of what they show, so that a tensor is cast once for all its views.
//
// The body of a repeat is rewritten by a rewriter of its own, which has the one of the program around it
// behind it: scales and histories are states of the step, and no iteration writes them.
#pragma once

#include <map>
#include <set>

#include "brrr/compiler/fp8/fp8_scale.h"
#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/precision/loss_scale.h"
#include "brrr/compiler/precision/precision_flow.h"
#include "brrr/compiler/rewrite/body_operands.h"
#include "brrr/compiler/rewrite/graph_builder.h"

namespace brrr::compiler {

class PrecisionRewriter {
 public:
  PrecisionRewriter(const Graph& graph, const PrecisionOptions& options);
  // Of the body of a repeat in the program that `around` rewrites.
  PrecisionRewriter(const Node& repeat, PrecisionRewriter& around);

  Graph run();

 private:
  enum class Form : uint8_t {
    traced,  // the type it was traced in
    bf16,
    f16,
    tf32,          // f32 without the bits that tf32 drops
    rounded_bf16,  // f32 that holds bf16 numbers
    e4m3,          // 8 bits, scaled
    e5m2
  };
  static Form form_of(DType dtype);
  PrecisionRewriter(const Graph& graph, const PrecisionOptions& options, const Node* repeat,
                    PrecisionRewriter* around);

  // ---- forms of values (precision_forms.cpp) ----
  ValueId give(ValueId id);
  ValueId read(const Node& node, ValueId id, Form form);
  ValueId get(ValueId id, Form form);
  ValueId make_view(const Node& node, Form form);
  ValueId make_form(ValueId id, const Node* maker, Form form);
  ValueId to_form(ValueId x, Form form);
  int state_of(ValueId id) const;
  bool is_written_forward(int state) const;
  ValueId low_copy(int state, DType dtype);
  bool is_seed(ValueId id) const;
  ValueId scaled_seed(ValueId id, Form form);
  ValueId scaled_down(ValueId id);
  ValueId final_value(ValueId id);

  // ---- nodes (precision_nodes.cpp) ----
  void rewrite(NodeId id);
  bool takes_low(const Node& node, const NodePlan& plan) const;
  bool is_float_call(const Node& node) const { return is_f32(from_, node.inputs[0]); }
  bool makes_f32(const Node& node) const;
  bool is_wanted_low(const Node& node) const;
  Attrs round_factors(const Node& node, const PrecisionRule& rule, ValueIds& inputs,
                      const Attrs& attrs);
  void rewrite_fp8(const Node& node);
  ValueId base_of(ValueId id) const;
  void record(const Node& node, const ValueIds& results);

  // ---- bodies (precision_body.cpp) ----
  void rewrite_repeat(const Node& node);
  void find_scaled_sums();
  ValueId cast_outside(ValueId id, Form form);

  // ---- the end (precision.cpp) ----
  void finish();
  void finish_states(const std::vector<ValueId>& after);

  bool is_body() const { return around_ != nullptr; }

  const Graph& from_;
  const PrecisionOptions& options_;
  const Node* repeat_;         // whose body this is, or null
  PrecisionRewriter* around_;  // of the program around it, or null
  PrecisionFlow flow_;
  GraphBuilder to_;
  BodyPorts ports_;
  LossScale loss_scale_;
  Fp8Scale fp8_;
  std::vector<Form> stored_;                           // by old value
  std::map<std::pair<ValueId, Form>, ValueId> forms_;  // of old values
  std::map<ValueId, ValueId> scaled_seeds_, scaled_down_;
  std::set<ValueId> scaled_sums_;           // of a body: last values of sums of gradients
  std::map<ValueId, ValueId> fp8_inverse_;  // by new 8-bit value: 1 / its scale
};

}  // namespace brrr::compiler
