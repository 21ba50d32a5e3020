// The policy as data: how each op takes its float operands. The first row that fits decides.
#pragma once

#include <optional>
#include <span>

#include "brrr/compiler/precision.h"

namespace brrr {

enum class Take : uint8_t {
  low,     // operands in the low type, results too; products may store their f32 sums as they are
  stored,  // operands as they are stored: the kernel widens them and computes in f32
  follow,  // low where an operand is stored low and a reader of the result takes it low, else f32
  table,   // rows of a parameter: low where a reader takes them low
  wide     // operands and results f32
};
std::string_view take_name(Take take);

struct PrecisionRule {
  std::string_view ops = {};        // names and patterns with *, separated by |; empty: any
  std::optional<OpKind> kind = {};  // none: any
  std::optional<Phase> phase = {};  // none: any
  Take take = Take::follow;
  uint32_t factors = 0;      // bit i: operand i is multiplied in a product (tf32, fp8)
  uint32_t wide_inputs = 0;  // bit i: operand i is f32 whatever the others are
  bool stores_sums = false;  // has an attribute `dtype` for results in f32
  bool takes_fp8 = false;    // under fp8 the factors are 8-bit
  std::string_view reason = {};

  // Operands past the bits of a mask are in neither: concat may have any number.
  bool is_factor(int i) const { return i < 32 && (factors >> i & 1U) != 0; }
  bool is_wide(int i) const { return i < 32 && (wide_inputs >> i & 1U) != 0; }
};
std::span<const PrecisionRule> precision_rules();
const PrecisionRule& find_precision_rule(const Node& node);

// The type that the low side of a policy is stored in; f32 for f32.
DType low_dtype(Precision precision);

// * is any text, ? any one character.
bool matches_pattern(std::string_view pattern, std::string_view text);

// The precision of every node: the policy, or the last override that covers its scope.
std::vector<Precision> node_precisions(const Graph& graph, const PrecisionOptions& options);
// Throws Error, with near names, where an override covers no node, neither of the program nor of its bodies.
void check_overrides(const Graph& graph, std::span<const PrecisionOverride> overrides);

}  // namespace brrr
