// What tests of micro-batches in mixed precision have in common.
#pragma once

#include <stdexcept>
#include <string>

#include "brrr/compiler/pipeline.h"
#include "brrr/ops/creation.h"

namespace brrr {

inline Tensor count_of(int64_t n) { return from_values(std::vector<int64_t>{n}, {}); }

inline PipelineOptions f16_options(const LossScaleOptions& scale = {}) {
  return {.precision = {.policy = Precision::f16_mixed, .loss_scale = scale}};
}
inline PipelineOptions fp8_options() {
  return {.precision = {.policy = Precision::fp8_mixed, .amax_steps = 3}};
}

inline const StateSlot& state_named(const Graph& graph, const std::string& name) {
  for (const StateSlot& state : graph.states) {
    if (state.name == name) return state;
  }
  throw std::runtime_error("there is no state named " + name);
}

}  // namespace brrr
