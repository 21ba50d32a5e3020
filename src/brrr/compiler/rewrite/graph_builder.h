// Adds nodes to a graph one by one, each typed by its op: what passes write new programs with.
#pragma once

#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {

class GraphBuilder {
 public:
  // New nodes belong to this part of the step, and carry this scope and segment.
  void set_place(Phase phase, std::string_view scope, SegmentId segment = {}) {
    phase_ = phase, scope_ = scope, segment_ = segment;
  }
  // Where constants live.
  void set_device(Device device) { device_ = device; }
  Device device() const { return device_; }

  ValueIds add_all(const OpDef& op, const ValueIds& inputs, const Attrs& attrs = {});
  ValueId add(const OpDef& op, const ValueIds& inputs, const Attrs& attrs = {}) {
    return add_all(op, inputs, attrs)[0];
  }
  ValueId cast(ValueId x, DType dtype);
  ValueId reduce(const OpDef& op, ValueId x);  // over all axes
  ValueId stack(const ValueIds& scalars);      // [how many there are]
  ValueId number(double value);
  ValueId integer(int64_t value);
  ValueId zeros(const TensorType& type);

  const TensorType& type(ValueId id) const { return graph.type(id); }

  Graph graph;

 private:
  Phase phase_ = Phase::forward;
  std::string_view scope_;
  SegmentId segment_;
  Device device_ = Device::cpu();
};

// What a pass that writes a graph anew begins with: the segments, inputs and states of the old one. Calls
// give(old value), which adds a value of the same type to `to`, notes it and returns it.
template <typename Give>
void begin_graph(Graph& to, const Graph& from, const Give& give) {
  to.segments = from.segments;
  for (const GraphInput& input : from.inputs) to.inputs.push_back({input.name, give(input.value)});
  for (const StateSlot& state : from.states) {
    const ValueId value = give(state.before);
    to.states.push_back({.name = state.name,
                         .before = value,
                         .after = value,
                         .tensor = state.tensor,
                         .copy_of = state.copy_of});
  }
}

// And what it ends with: last values of states, results and seeds. now(old value) is the new one, or none
// where it was dropped, which a seed may be.
template <typename Now>
void end_graph(Graph& to, const Graph& from, const Now& now) {
  for (size_t i = 0; i < from.states.size(); ++i) to.states[i].after = now(from.states[i].after);
  for (ValueId id : from.outputs) to.outputs.push_back(now(id));
  for (ValueId id : from.seeds) {
    if (now(id).valid()) to.seeds.push_back(now(id));
  }
}

// The same attributes with this one added, or changed where it is there already.
Attrs with_attr(const Attrs& attrs, const Attr& entry);

}  // namespace brrr::compiler
