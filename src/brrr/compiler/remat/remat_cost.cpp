#include "brrr/compiler/remat/remat_cost.h"

#include <algorithm>

namespace brrr::compiler {

int64_t bytes_of(const Graph& graph, ValueId id) {
  const TensorType& type = graph.type(id);
  return storage_bytes(type.dtype, numel(type.shape));
}

double compute_seconds(const Graph& graph, const Node& node, const RematRates& rates) {
  const double rate = node.op->kind == OpKind::contraction ? rates.contraction_flops_per_second
                                                           : rates.elementwise_flops_per_second;
  return static_cast<double>(graph::cost_of(graph, node).flops) / rate;
}

double node_seconds(const Graph& graph, const Node& node, const RematRates& rates) {
  if (node.op->view) return 0;
  const Cost cost = graph::cost_of(graph, node);
  const double traffic = rates.traffic_seconds(cost.bytes_read + cost.bytes_written);
  return std::max(compute_seconds(graph, node, rates), traffic) + rates.launch_seconds;
}

}  // namespace brrr::compiler
