#include "brrr/compiler/rewrite/matmul_graph.h"

#include "brrr/compiler/fuse/fuse.h"
#include "brrr/ops/matmul/epilogue.h"

namespace brrr::compiler {
namespace {

constexpr int64_t kAddressAlignment = 16;
bool is_aligned(DType dtype, int64_t elements) {
  return storage_bytes(dtype, elements) % kAddressAlignment == 0;
}

}  // namespace

ProductGraph::ProductGraph(const Graph& graph) : graph_(graph), uses_(graph::uses_of(graph)) {
  for (ValueId id : graph.outputs) kept_.insert(id.value);
  for (const StateSlot& state : graph.states) kept_.insert(state.after.value);
}

bool ProductGraph::is_single_use(ValueId id) const {
  return uses(id).size() == 1 && !kept_.count(id.value);
}

std::optional<size_t> ProductGraph::maker(ValueId id) const {
  const NodeId node = graph_.value(id).node;
  return node.valid() ? std::optional<size_t>(node.index()) : std::nullopt;
}

ValueId ProductGraph::source_of(ValueId id) const {
  for (std::optional<size_t> n = maker(id); n && graph_.nodes[*n].op->view; n = maker(id))
    id = graph_.nodes[*n].inputs[0];
  return id;
}

ValueId ProductGraph::sole_source(ValueId id) const {
  const ValueId source = behind_reshapes(graph_, id);
  for (ValueId step = id; step != source; step = graph_.node(graph_.value(step).node).inputs[0]) {
    if (!is_single_use(step)) return {};
  }
  return is_single_use(source) ? source : ValueId();
}

std::optional<Product> ProductGraph::product_at(size_t n) const {
  const Node& node = graph_.nodes[n];
  if (!graph::is_matmul(node)) return {};
  if (type(node.inputs[0]).shape.size() < 2 || type(node.inputs[1]).shape.size() != 2) return {};
  return Product{.node = NodeId(n),
                 .a = node.inputs[0],
                 .b = node.inputs[1],
                 .bias = node.inputs.size() == 3 ? node.inputs[2] : ValueId(),
                 .result = node.outputs[0],
                 .transposed = node.op->role == OpRole::linear};
}

Layout ProductGraph::layout_of(ValueId id) const {
  const std::optional<size_t> n = maker(id);
  if (!n || !graph_.nodes[*n].op->view) return contiguous_layout(type(id).shape);
  return graph_.nodes[*n].op->view(layout_of(graph_.nodes[*n].inputs[0]), graph_.nodes[*n].attrs);
}

bool ProductGraph::is_in_order(ValueId id) const {
  const Layout layout = layout_of(id);
  return layout.is_contiguous() && is_aligned(type(id).dtype, layout.offset);
}

// One of the two last strides is 1 and rows begin at multiples of 16 bytes; leading axes are rows.
bool ProductGraph::is_library_factor(ValueId id, bool transposed) const {
  Layout layout = layout_of(id);
  if (transposed) layout = transpose_layout(layout, 0, 1);
  const int rank = layout.rank();
  if (rank > 2 && !layout.is_contiguous()) return false;
  const DType dtype = type(id).dtype;
  const int64_t rows = layout.strides[rank - 2], cols = layout.strides[rank - 1];
  const bool row_major = cols == 1 && rows >= layout.shape[rank - 1] && is_aligned(dtype, rows);
  const bool column_major =
      rank == 2 && rows == 1 && cols >= layout.shape[0] && is_aligned(dtype, cols);
  return is_aligned(dtype, layout.offset) && (row_major || column_major);
}

bool ProductGraph::is_library_product(const Product& product) const {
  const TensorType &a = type(product.a), &b = type(product.b);
  const int64_t columns = product.transposed ? b.shape[0] : b.shape[1];
  return kEpilogueDTypes.contains(a.dtype) && a.dtype == b.dtype &&
         columns % kEpilogueAlignment == 0 && numel(a.shape) > 0 && numel(b.shape) > 0 &&
         is_library_factor(product.a, false) && is_library_factor(product.b, product.transposed);
}

}  // namespace brrr::compiler
