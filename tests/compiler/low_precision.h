// What tests of low precision have in common: options, counts of micro-batches, states by name, and programs held
// against what they must not differ from.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "brrr/graph/interpret.h"
#include "brrr/ops/create/creation.h"
#include "brrr/runtime/executable.h"

namespace brrr {

inline Tensor count_of(int64_t n) { return from_values(std::vector<int64_t>{n}, {}); }

inline compiler::PipelineOptions with_policy(
    compiler::Precision policy, const std::vector<compiler::PrecisionOverride>& overrides = {}) {
  return {.precision = {.policy = policy, .overrides = overrides}};
}
inline compiler::PipelineOptions f16_options(const compiler::LossScaleOptions& scale = {}) {
  return {.precision = {.policy = compiler::Precision::f16_mixed, .loss_scale = scale}};
}
inline compiler::PipelineOptions fp8_options() {
  return {.precision = {.policy = compiler::Precision::fp8_mixed, .amax_steps = 3}};
}

inline const graph::StateSlot& state_named(const graph::Graph& graph, const std::string& name) {
  for (const graph::StateSlot& state : graph.states) {
    if (state.name == name) return state;
  }
  throw std::runtime_error("there is no state named " + name);
}

// One run: its first result and all states have the bits that the interpreter gives.
inline void expect_runs_as_interpreted(runtime::Executable& program,
                                       std::span<const Tensor> inputs) {
  const graph::Interpreted expected = graph::interpret(program.graph(), inputs);
  EXPECT_EQ(program.run(inputs)[0].item<float>(), expected.outputs[0].item<float>());
  for (size_t i = 0; i < expected.states.size(); ++i)
    EXPECT_EQ(program.graph().states[i].tensor.to_vector<float>(),
              expected.states[i].to_vector<float>())
        << program.graph().states[i].name;
}

// losses_of(options) trains anew: without any one of the passes that make programs faster its bits are the same.
template <typename LossesOf>
void expect_passes_keep_the_bits(compiler::Precision policy, const LossesOf& losses_of) {
  const std::vector<float> expected = losses_of(with_policy(policy));
  const compiler::PipelineOptions variants[] = {{.without = {"simplify"}},
                                                {.without = {"fuse"}},
                                                {.without = {"plan_memory"}},
                                                {.without = {"group_kernels"}}};
  for (compiler::PipelineOptions options : variants) {
    options.precision.policy = policy;
    EXPECT_EQ(losses_of(options), expected) << compiler::precision_name(policy);
  }
}

}  // namespace brrr
