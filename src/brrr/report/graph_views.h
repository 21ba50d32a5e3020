// Graphs and kernel lists for people and programs: Graphviz, JSON, and a table of kernels.
#pragma once

#include <string>

#include "brrr/compiler/lower/kernel_list.h"
#include "brrr/compiler/remat/remat_values.h"
#include "brrr/cost/predict.h"

namespace brrr::report {

// For `dot -Tsvg`: nodes coloured by kind, edges with the type that flows along them. Views are small.
std::string graph_dot(const graph::Graph& graph);
std::string kernels_dot(const compiler::KernelList& list);

// {"inputs": [...], "states": [...], "nodes": [{"op", "phase", "inputs", "outputs", "flops", ...}]}
std::string graph_json(const graph::Graph& graph);
std::string kernels_json(const compiler::KernelList& list, const cost::Prediction& prediction);

// One line a kernel, and the sum.
std::string kernels_text(const compiler::KernelList& list, const cost::Prediction& prediction);

// What the backward part needs of the forward part, and what computing it again would cost.
std::string kept_values_text(const graph::Graph& graph,
                             const std::vector<compiler::KeptValue>& values);
std::string kept_values_json(const graph::Graph& graph,
                             const std::vector<compiler::KeptValue>& values);

}  // namespace brrr::report
