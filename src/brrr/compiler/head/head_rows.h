// The head of a language model as a part of a graph: the product that makes logits and everything that reads
// something as large as them. Each row of it can be computed without the other rows, but for sums over rows.
#pragma once

#include <optional>

#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {

// What a value of the head is when only some rows are computed.
enum class HeadValue : uint8_t {
  none,     // not of the head
  wide,     // those rows of logits, or of what has their shape: [..., classes]
  turned,   // the same transposed: [classes, rows]
  rows,     // those rows of something smaller: a loss, or the gradient of the head's operand
  sum,      // one term of a sum over all rows: the gradient of a weight
  largest,  // the largest of those rows
};

struct Head {
  int64_t rows = 0;
  int64_t row_bytes = 0;          // of logits
  std::vector<size_t> nodes;      // in order; the product is the first
  std::vector<HeadValue> values;  // by value of the graph

  HeadValue of(ValueId id) const { return values[id.index()]; }
};

// The head whose losses the cross_entropy at this node computes. None where rows of logits meet each other,
// where something else wants logits as a whole, and where a gradient that comes back to the losses depends
// on them: all rows must then be there before the first of them goes on.
std::optional<Head> find_head(const Graph& graph, size_t cross_entropy);

// Whether what the head wants of this operand, which others make, are the rows of one chunk; the axis of
// rows where it does. A column of one number a row counts as rows too.
std::optional<int> row_axis(const Graph& graph, const Head& head, const Node& node, int input);

}  // namespace brrr::compiler
