// What running a node again costs, in seconds. An estimate for choosing between keeping and computing;
// the rates are those of a machine, and only their ratios matter to the choice.
#pragma once

#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {

// Defaults: two cores of a Xeon with AVX-512, measured (bench/results: matmul_bench, kernel_bench and
// peaks_bench). With calibrated rates at hand, fill it from those.
struct RematRates {
  double contraction_flops_per_second = 2.6e11;
  double elementwise_flops_per_second =
      2e10;                          // all that is not a contraction, operands in the L1 cache
  double bytes_per_second = 2.5e10;  // between a kernel and memory
  double launch_seconds = 3e-6;      // of a kernel: fork and join of the threads

  double traffic_seconds(int64_t bytes) const {
    return static_cast<double>(bytes) / bytes_per_second;
  }
};

int64_t bytes_of(const Graph& graph, ValueId id);

// The arithmetic alone, operands at hand.
double compute_seconds(const Graph& graph, const Node& node, const RematRates& rates);
// The node as a kernel of its own: the larger of arithmetic and traffic, and the launch. Views are free.
double node_seconds(const Graph& graph, const Node& node, const RematRates& rates);

}  // namespace brrr::compiler
