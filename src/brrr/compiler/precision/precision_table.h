// How each op takes its float operands: what ops declare, and what holds for those that declare nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/precision/precision.h"

namespace brrr::compiler {

std::string_view take_name(Take take);

// The rule of a node: that of the update in the update, else what its op declares (OpDef::precision), else that of the
// op's kind.
const PrecisionRule& find_precision_rule(const Node& node);

// All rules for people, in the order in which they are asked.
struct PrecisionRow {
  std::string ops = {};             // names, separated by |; empty: any
  std::optional<OpKind> kind = {};  // none: any
  std::optional<Phase> phase = {};  // none: any
  const PrecisionRule* rule = nullptr;
};
std::vector<PrecisionRow> precision_rows();

// The type that the low side of a policy is stored in; f32 for f32.
DType low_dtype(Precision precision);

// * is any text, ? any one character.
bool matches_pattern(std::string_view pattern, std::string_view text);

// The precision of every node: the policy, or the last override that covers its scope.
std::vector<Precision> node_precisions(const Graph& graph, const PrecisionOptions& options);
// Throws Error, with near names, where an override covers no node, neither of the program nor of its bodies.
void check_overrides(const Graph& graph, std::span<const PrecisionOverride> overrides);

}  // namespace brrr::compiler
