// Why activations are stored: every value of the forward part that the backward part reads, with its
// bytes, who needs it, and what computing it again instead would cost.
#pragma once

#include <string>
#include <vector>

#include "brrr/account/rates.h"
#include "brrr/graph/graph.h"

namespace brrr {

struct KeptValue {
  ValueId value;
  std::string made_by;    // "relu (node 3)"
  std::string needed_by;  // the first backward node that reads it
  TensorType type;
  int64_t bytes = 0;
  int64_t recompute_flops = 0;   // of the node that makes it, from values that are there
  double recompute_seconds = 0;  // at these rates, alone: without what fusing it would save
};

// The largest first. Views count as what they show. States and inputs are there anyway and cost nothing
// to keep, so they are left out.
std::vector<KeptValue> kept_values(const Graph& joint, const Rates& rates);

}  // namespace brrr
