// Products in a graph as the matrix library of a GPU sees them: factors with their strides, and who else reads
// what is around them.
#pragma once

#include <optional>
#include <set>

#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {

// A product of two matrices in the words of ops/matmul/epilogue.h.
struct Product {
  NodeId node;
  ValueId a, b, bias, result;  // no bias: not valid
  bool transposed = false;     // b is [n, k]
};

class ProductGraph {
 public:
  explicit ProductGraph(const Graph& graph);

  const Graph& graph() const { return graph_; }
  const TensorType& type(ValueId id) const { return graph_.type(id); }
  const std::vector<NodeId>& uses(ValueId id) const { return uses_[id.index()]; }
  bool is_single_use(ValueId id) const;
  std::optional<size_t> maker(ValueId id) const;  // which node
  ValueId source_of(ValueId id) const;            // behind all views
  // What `id` shows through views that keep the order of elements, where nobody else reads any of it;
  // otherwise none.
  ValueId sole_source(ValueId id) const;

  // The matmul or linear of matrices without batches that this node is.
  std::optional<Product> product_at(size_t node) const;

  // How a value lies when the program runs: results in order, views as they show them.
  Layout layout_of(ValueId id) const;
  // Elements in order, beginning at a multiple of 16 bytes.
  bool is_in_order(ValueId id) const;
  // Whether cuBLASLt takes epilogues with it, by its dtypes, sizes and strides.
  bool is_library_product(const Product& product) const;

 private:
  bool is_library_factor(ValueId id, bool transposed) const;

  const Graph& graph_;
  std::vector<std::vector<NodeId>> uses_;
  std::set<int32_t> kept_;  // values that are outputs or states
};

}  // namespace brrr::compiler
