// Tracing: while a Tracer lives, the ops that its thread calls become nodes of a graph instead of
// running. Tensors inside a trace are handles without elements.
//
// Storage is what has identity. A storage stands for its newest value in the graph, the base; a handle
// with another layout is a view derived from it. A write makes a new base, and later uses of any view
// are derived again from that one. Concrete tensors met in a trace become states, one for each storage.
#pragma once

#include <string_view>
#include <unordered_map>

#include "brrr/graph/graph.h"

namespace brrr {

class Tracer {
 public:
  Tracer();
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // The tracer of this thread, or nullptr.
  static Tracer* current();

  Tensor add_input(const TensorType& type, Device device, std::string name);
  // Gives the state that x becomes (or has become) a name for people; others are called "state 3".
  void name_state(const Tensor& x, std::string name);

  // What call_op does in a trace: a node, and handles to its results of these types.
  Tensors record(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs,
                 std::span<const TensorType> types, Device device);
  Tensor record_view(const OpDef& op, const Tensor& input, const Attrs& attrs);
  // What call_into does: the target's storage has a new value from here on.
  void record_write(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs,
                    const TensorType& type, const Tensor& target);

  // Forward nodes belong to this segment until leave_segment.
  void enter_segment(std::string name, bool checkpoint);
  void leave_segment();

  void set_phase(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }
  // The name that nodes traced from here on carry; it must outlive the graph (graph/scope.h).
  void set_scope(std::string_view scope) { scope_ = scope; }
  std::string_view scope() const { return scope_; }
  // Remembers x as the gradient that a backward walk starts from.
  void mark_seed(const Tensor& x) { graph_.seeds.push_back(value_of(x)); }

  ValueId value_of(const Tensor& x);
  // Ends the trace: the graph whose outputs are these tensors.
  Graph finish(std::span<const Tensor> outputs);

 private:
  struct DerivedView {
    Layout layout;
    ValueId value;
  };
  // What a storage stands for.
  struct Base {
    Ref<Storage> storage;  // kept, so that no other storage gets its address
    ValueId value;
    Layout layout;                   // of the base itself: contiguous, from element 0
    std::vector<DerivedView> views;  // of this value, not of older ones
    int state = -1;
  };

  NodeId add_node(const OpDef& op, const Attrs& attrs, const ValueIds& inputs,
                  std::span<const TensorType> types);
  Base& base_of(const Tensor& x);
  Base& add_base(Ref<Storage> storage, ValueId value, const Layout& layout);
  Base& add_state(const Tensor& x);
  Tensor make_handle(const TensorType& type, Device device, ValueId value);

  Graph graph_;
  Phase phase_ = Phase::forward;
  std::string_view scope_;
  SegmentId segment_;
  std::unordered_map<const Storage*, Base> bases_;
};

// Names the part of the forward pass that is traced while it lives; outside a trace it does nothing.
//   { const SegmentScope layer("h.0");  x = block(x); }
class SegmentScope {
 public:
  explicit SegmentScope(std::string name, bool checkpoint = false);
  ~SegmentScope();
  SegmentScope(const SegmentScope&) = delete;
  SegmentScope& operator=(const SegmentScope&) = delete;

 private:
  Tracer* tracer_;
};

}  // namespace brrr
