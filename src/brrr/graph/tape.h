// The tape: what happened to the values whose gradient is wanted, newest last.
// A record keeps the operands that its gradient rule reads, and for the others only shape and dtype.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "brrr/graph/op_def.h"

namespace brrr::graph {

// Who a value is to the reverse walk: output `output` of `source`, or the leaf with `slot`.
struct ValueKey {
  GradSource* source = nullptr;
  int output = 0;
  GradSlot* slot = nullptr;
  bool operator==(const ValueKey&) const = default;
};
ValueKey key_of(const Tensor& x);

// The sequence number that the next record will have: records with this or a larger one are made later.
uint64_t next_sequence();

// Collects the values wanting gradients that ops of this thread read while nothing is recorded:
//   GradWatch watch;  NoGrad quiet;  fn(x);  watch.seen()
class GradWatch {
 public:
  GradWatch();
  ~GradWatch();
  GradWatch(const GradWatch&) = delete;
  GradWatch& operator=(const GradWatch&) = delete;

  static GradWatch* current();  // the innermost of this thread, or nullptr
  void see(std::span<const Tensor> inputs);
  const std::vector<Tensor>& seen() const { return seen_; }  // each value once

 private:
  std::vector<Tensor> seen_;
  GradWatch* outer_;
};

class TapeRecord final : public GradSource {
 public:
  TapeRecord(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs);
  ~TapeRecord() override;
  // Links `outputs` to this record; called once, after the op ran.
  void attach_outputs(std::span<Tensor> outputs);

  const OpDef& op() const { return *op_; }
  const Attrs& attrs() const { return attrs_; }
  std::string_view scope() const { return scope_; }  // of the trace that it was recorded in
  uint64_t sequence() const { return sequence_; }    // grows with time: a topological order
  int input_count() const { return inputs_.size(); }
  int output_count() const { return outputs_.size(); }
  // A rule of this record's own, called in place of the op's.
  using Rule = std::function<Tensors(const GradCall&)>;
  void set_rule(Rule rule) { rule_ = std::make_unique<Rule>(std::move(rule)); }
  Tensors run_rule(const GradCall& call) const { return rule_ ? (*rule_)(call) : op_->grad(call); }
  bool is_freed() const { return freed_; }

  bool input_wants_grad(int i) const { return inputs_[i].source || inputs_[i].slot; }
  TapeRecord* input_source(int i) const;  // nullptr for leaves and constants
  int input_source_output(int i) const { return inputs_[i].source_output; }
  GradSlot* input_slot(int i) const { return inputs_[i].source ? nullptr : inputs_[i].slot.get(); }
  GradSlot* output_slot(int i) const { return outputs_[i].slot.get(); }
  void keep_output_grad(int output, Ref<GradSlot> slot) override;

  // Throws Error when an operand that the rule reads was written to since the op ran.
  void check_unwritten() const;

  // The operands again, for the gradient rule.
  Tensor input(int i) const;
  Tensor output(int i);
  const TensorType& input_type(int i) const { return inputs_[i].type; }
  const TensorType& output_type(int i) const { return outputs_[i].type; }

  // Drops everything kept; a second backward pass through this record is an error.
  void free_saved();

 private:
  struct SavedInput {
    TensorType type;
    Tensor value;  // undefined where the rule does not read it
    uint32_t version = 0;
    Ref<GradSource> source;
    int source_output = 0;
    Ref<GradSlot> slot;
  };
  struct SavedOutput {
    TensorType type;
    Layout layout;
    Ref<Storage> storage;
    uint32_t version = 0;
    Ref<GradSlot> slot;
  };

  const OpDef* op_;
  Attrs attrs_;
  std::string_view scope_;
  uint64_t sequence_;
  bool freed_ = false;
  std::unique_ptr<Rule> rule_;
  SmallVector<SavedInput, 2> inputs_;
  SmallVector<SavedOutput, 1> outputs_;
};

}  // namespace brrr::graph
