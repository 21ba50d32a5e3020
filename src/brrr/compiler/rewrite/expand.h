// Ops that have no kernel on a backend become what they are composed of, before anything is fused: what is left has a
// kernel, or is elementwise and becomes part of a generated one. Matmuls of operands that `to_tf32` rounds take the
// operands as they were: tensor cores drop the bits themselves.
#pragma once

#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {

using HasKernel = bool (*)(const OpDef& op);
// `device` is where the graph's tensors are.
Graph expand(const Graph& graph, Device device, HasKernel has_kernel);

}  // namespace brrr::compiler
