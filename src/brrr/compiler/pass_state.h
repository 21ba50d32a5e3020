// Gives a graph a state that a pass invented.
#pragma once

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/rewrite/added_states.h"

namespace brrr::compiler {

// Adds the state of this name and type, shared through `states`; returns its index.
inline size_t add_pass_state(Graph& graph, AddedStates& states, const std::string& name,
                             const TensorType& type, double initial, Device device) {
  const AddedStates::Named& state = states.named(name, type, initial, device);
  const ValueId value = graph.add_value(type);
  graph.states.push_back(
      {.name = state.name, .before = value, .after = value, .tensor = state.tensor});
  return graph.states.size() - 1;
}

}  // namespace brrr::compiler
