// Precision: turns an f32 program (forward, backward, update in one graph) into mixed precision. Models
// carry no casts; what is low and what stays f32 is a table, by op and part of the step.
//
//   - contractions take operands in the low type and add up in f32
//   - reductions, norms, softmax and losses compute in f32
//   - parameters and optimizer state stay f32, and gradients of parameters reach the update in f32
//   - what lies between kernels, the residual stream included, is stored in the low type, unless all its
//     readers are f32
//
// A parameter that the low part reads has a copy in the low type as a state: the update writes it beside
// the f32 master, so that no step casts it again.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/rewrite/added_states.h"

namespace brrr::compiler {

enum class Precision : uint8_t { f32, bf16_mixed, f16_mixed, fp8_mixed };
std::string_view precision_name(Precision precision);
// "f32", "bf16", "f16" and "fp8", with or without "_mixed"; throws Error with the list on any other.
Precision parse_precision(std::string_view name);

// How products of f32 operands are computed, on every backend. The sum is f32 in all of them.
//   ieee   operands as they are
//   tf32   operands keep 10 mantissa bits, the 13 below are dropped: what tensor cores read
//   bf16   operands are rounded to bf16
// In attention the operands are treated so, and the probabilities between its two products are f32.
enum class MatmulPrecision : uint8_t { ieee, tf32, bf16 };
std::string_view matmul_precision_name(MatmulPrecision precision);
MatmulPrecision parse_matmul_precision(std::string_view name);

// Nodes of a module, by its name and those of its parts: "h.*.attn", "head". * stands for any text, dots
// included, ? for one character; a pattern that matches a module covers what lies inside it. The last
// override that matches wins; one that matches no module is an Error.
struct PrecisionOverride {
  std::string pattern;
  Precision precision = Precision::f32;
};
PrecisionOverride parse_precision_override(std::string_view text);  // "h.*.attn=f32"

// f16 has no numbers below 6e-8: gradients are scaled up before they become f16, and down again in f32
// before the update. When one overflows, the step changes neither parameters nor optimizer state.
enum class LossScaling : uint8_t {
  automatic,  // dynamic for f16, none for the others
  none,
  fixed,   // always `initial`
  dynamic  // a state: times `backoff` after an overflow, times `growth` after so many good steps
};
struct LossScaleOptions {
  LossScaling kind = LossScaling::automatic;
  double initial = 65536;  // powers of two scale without rounding
  double growth = 2, backoff = 0.5;
  int64_t growth_interval = 2000;
  double smallest = 1, largest = 16777216;
};

struct PrecisionOptions {
  Precision policy = Precision::f32;
  MatmulPrecision matmul = MatmulPrecision::ieee;
  std::vector<PrecisionOverride> overrides = {};
  LossScaleOptions loss_scale = {};
  // fp8 operands are scaled by the largest magnitude of so many steps before, each tensor for itself.
  int64_t amax_steps = 16;
  std::shared_ptr<AddedStates> states =
      nullptr;  // shared between programs; none: the program has its own
};

// The program in this precision; the same graph when the policy asks for nothing.
Graph apply_precision(const Graph& graph, const PrecisionOptions& options);

// What the options ask for and why, row by row, for people.
std::string to_text(const PrecisionOptions& options);

}  // namespace brrr::compiler
