// Removes what does not matter: nodes that nobody reads, and second copies of what exists already.
// Values keep their bits: nothing is reassociated and no arithmetic is replaced by other arithmetic.
#pragma once

#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {

//   - a node equal to an earlier one (op, attributes, operands) is that one; host numbers above all
//   - a `cast` to the dtype it has already is its operand, and so is one back from a wider float
//   - nodes whose results reach neither an output nor a state are dropped
Graph simplify(const Graph& graph);

}  // namespace brrr::compiler
