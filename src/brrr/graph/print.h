// Graphs as text, for people and for golden tests; what is printed can be read back.
//
//   input %0: f32[2, 3] "x"
//   state %1: f32[3, 4] "w"
//   segment 0 "h.0"
//   segment 1 "h.0.mlp" in 0 checkpoint
//   %2: f32[2, 4] = matmul %0 %1
//   %3: f32[] = mean %2 {axes=[0, 1] keep_dims=false}
//   %4: f32[2, 3] = gelu %0 @0
//   backward
//   %5: f32[] = number {dtype=f64 device=cpu value=0.125} @"head"
//   seed %5
//   write "w" %9
//   return %3
//
// The body of a node stands between brackets behind its line, with numbers of its own:
//
//   %5: f32[3] = repeat %0 %1 {sliced=1 captured=0 sums=1 initial=0 most=4} [
//     input %0: i64[] "index"
//     ...
//     return
//   ]
#pragma once

#include <string>
#include <string_view>

#include "brrr/graph/graph.h"

namespace brrr::graph {

// A node ends with its scope, a state with the state that it is a cast of: state %2: bf16[3, 4] "w.bf16"
// of "w". `seed` names the gradient that a backward walk starts from.
//
// Values are numbered in the order of their lines, whatever their ids.
std::string to_text(const Graph& graph);

// The inverse. Values may have any numbers. Throws Error with the line and what is wrong with it.
// States get no elements.
Graph parse_graph(std::string_view text);

}  // namespace brrr::graph
