// What the precision pass knows of a program before it writes the new one.
#pragma once

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/precision/precision_table.h"

namespace brrr::compiler {

struct NodePlan {
  const PrecisionRule* rule;
  DType low;         // f32: the node stays as it is
  bool fp8 = false;  // its factors are 8-bit
};

struct PrecisionFlow {
  std::vector<NodePlan> nodes;

  // By value: a reader takes it in the low type (of a forward value: a forward reader). Values that only
  // f32 readers see are stored f32.
  std::vector<bool> wanted_low;
  // By value: which seed's backward walk it belongs to; -1: none. Such values grow with the loss scale.
  std::vector<int> gradient_of;
  // A node that reads gradients of two walks (a gradient of a gradient), or null: it has no one scale.
  const Node* mixes_gradients = nullptr;

  bool is_gradient(ValueId id) const { return gradient_of[id.index()] >= 0; }
};

PrecisionFlow plan_precision(const Graph& graph, const PrecisionOptions& options);

// The values that the pass is about; others (f64, integers, bools, host numbers) stay as they are.
inline bool is_f32(const Graph& graph, ValueId id) { return graph.type(id).dtype == DType::f32; }
// Scalars in elementwise ops stay f32 beside low tensors: they decide no type and cost nothing.
bool is_free_scalar(const Graph& graph, const Node& node, ValueId input);

}  // namespace brrr::compiler
