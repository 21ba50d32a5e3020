// Runs a graph node by node with eager ops: slow, obvious, and the oracle for everything that is faster.
#pragma once

#include <functional>

#include "brrr/graph/graph.h"

namespace brrr::graph {

struct Interpreted {
  std::vector<Tensor> outputs;
  std::vector<Tensor> states;  // the value of each state after the call; nothing is written
};

// Called behind every node with what it has read and made, nodes of bodies included.
using NodeObserver =
    std::function<void(const Node& node, const Tensors& operands, const Tensors& results)>;

// `states` stands for the elements of the graph's states; by default those that were traced.
Interpreted interpret(const Graph& graph, std::span<const Tensor> inputs,
                      std::span<const Tensor> states = {}, const NodeObserver& observe = {});

}  // namespace brrr::graph
