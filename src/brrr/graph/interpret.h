// Runs a graph node by node with eager ops: slow, obvious, and the oracle for everything that is faster.
#pragma once

#include "brrr/graph/graph.h"

namespace brrr {

struct Interpreted {
  std::vector<Tensor> outputs;
  std::vector<Tensor> states;  // the value of each state after the call; nothing is written
};

// `states` stands for the elements of the graph's states; by default those that were traced.
Interpreted interpret(const Graph& graph, std::span<const Tensor> inputs,
                      std::span<const Tensor> states = {});

}  // namespace brrr
