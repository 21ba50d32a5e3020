// Tracing: while a Tracer lives, the ops that its thread calls become nodes of a graph instead of
// running. Tensors inside a trace are handles without elements.
//
// Storage is what has identity. A storage stands for its newest value in the graph, the base; a handle
// with another layout is a view derived from it. A write makes a new base, and later uses of any view
// are derived again from that one. Concrete tensors met in a trace become states, one for each storage.
//
// The body of a repeat (graph/repeat.h) is traced once, into a graph of its own. What it meets from
// outside is captured, storage by storage; what it writes of that goes from one iteration to the next.
#pragma once

#include <deque>
#include <string_view>
#include <unordered_map>

#include "brrr/graph/graph.h"

namespace brrr::graph {

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

  // A repeat: ops between these two calls make its body.
  struct RepeatHandles {
    Tensor index;
    std::vector<Tensor> slices;
  };
  RepeatHandles begin_repeat(const Tensor& count, std::span<const Tensor> sliced);
  // A value of the body that starts at zero and keeps what is written to it for the next iteration.
  Tensor add_sum(const TensorType& type);
  // The sums after the last iteration, in the order in which they were added.
  std::vector<Tensor> end_repeat();
  // Forgets a body that could not be traced; does nothing where none is open.
  void abandon_repeat() noexcept;

  void set_phase(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }
  // The name that nodes traced from here on carry; it must outlive the graph (graph/scope.h).
  void set_scope(std::string_view scope) { scope_ = scope; }
  std::string_view scope() const { return scope_; }
  // Remembers x as the gradient that a backward walk starts from.
  void mark_seed(const Tensor& x) { graph().seeds.push_back(value_of(x)); }

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
    int state = -1;                  // of the program, not of a body
    ValueId entry;  // in a body, of what comes from outside: its value at the start
  };
  // The program, or a body that is open.
  struct Frame {
    Graph graph;
    std::unordered_map<const Storage*, Base> bases;
    Tensor count;
    std::vector<Tensor> sliced;  // as they are outside
    std::vector<Tensor> given;   // handles to the inputs of the graph
    std::vector<Tensor> sums;
    SegmentId segment;                     // the innermost that is open
    std::vector<const Storage*> captured;  // in the order in which the body met them
  };
  // What a body calls a state of the program, which may get its name after the body has ended.
  struct StateName {
    std::shared_ptr<Graph> body;
    bool is_state;  // of the body, else one of its inputs
    size_t position;
    int state;
  };

  Frame& frame() { return frames_.back(); }
  Graph& graph() { return frames_.back().graph; }
  NodeId add_node(const OpDef& op, const Attrs& attrs, const ValueIds& inputs,
                  std::span<const TensorType> types);
  Base& base_of(const Tensor& x) { return base_of(x, frames_.size() - 1); }
  Base& base_of(const Tensor& x, size_t depth);
  Base& add_base(Ref<Storage> storage, ValueId value, const Layout& layout, size_t depth);
  Base& add_state(const Tensor& x);
  Base& capture(const Tensor& x, size_t depth);
  void set_value(Base& base, ValueId value);
  Tensor make_handle(const TensorType& type, Device device, ValueId value);
  ValueId add_one(const OpDef& op, const Attrs& attrs, const ValueIds& inputs,
                  const TensorType& type);
  int64_t largest_count(const Frame& body);
  static void require_read_only(const Frame& frame, std::string_view who);

  std::deque<Frame> frames_;  // the program first, the innermost body last
  std::vector<StateName> state_names_;
  Phase phase_ = Phase::forward;
  std::string_view scope_;
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

}  // namespace brrr::graph
