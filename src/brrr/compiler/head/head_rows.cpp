#include "brrr/compiler/head/head_rows.h"

#include <algorithm>

#include "brrr/compiler/fuse/fuse.h"

namespace brrr::compiler {
namespace {

class HeadFinder {
 public:
  HeadFinder(const Graph& graph, const Node& loss) : graph_(graph) {
    const TensorType& logits = type(loss.inputs[0]);
    head_.rows = logits.shape[0];
    columns_ = logits.shape[1];
    head_.row_bytes = storage_bytes(logits.dtype, columns_);
    head_.values.assign(graph.values.size(), HeadValue::none);
  }

  std::optional<Head> find(const Node& loss) {
    const std::optional<size_t> product = product_behind(loss.inputs[0]);
    if (!product || !add_product(*product)) return {};
    for (size_t n = *product + 1; n < graph_.nodes.size(); ++n) {
      const ValueIds& inputs = graph_.nodes[n].inputs;
      if (std::any_of(inputs.begin(), inputs.end(), [&](ValueId id) { return is_large(id); }) &&
          !add(n))
        return {};
    }
    if (wants_whole_logits() || waits_for_itself()) return {};
    return std::move(head_);
  }

 private:
  const TensorType& type(ValueId id) const { return graph_.type(id); }
  HeadValue of(ValueId id) const { return head_.of(id); }
  bool is_large(ValueId id) const {
    return of(id) == HeadValue::wide || of(id) == HeadValue::turned;
  }
  bool has_rows(ValueId id) const {
    const Shape& shape = type(id).shape;
    return !shape.empty() && shape.back() > 0 && numel(shape) == head_.rows * shape.back();
  }
  bool has_wide_shape(ValueId id) const {
    return has_rows(id) && type(id).shape.size() >= 2 && type(id).shape.back() == columns_;
  }

  // Back over reshapes and over ops of one element.
  std::optional<size_t> product_behind(ValueId id) const {
    while (has_wide_shape(id) && graph_.value(id).node.valid()) {
      const NodeId maker = graph_.value(id).node;
      const Node& node = graph_.node(maker);
      if (graph::is_matmul(node)) return maker.index();
      if (!node.op->view && !is_tileable(graph_, node)) return {};
      const auto next = std::find_if(node.inputs.begin(), node.inputs.end(),
                                     [&](ValueId input) { return has_wide_shape(input); });
      if (next == node.inputs.end()) return {};
      id = *next;
    }
    return {};
  }

  bool add_product(size_t n) {
    const Node& node = graph_.nodes[n];
    if (!has_rows(node.inputs[0]) || type(node.inputs[0]).shape.size() < 2 ||
        type(node.inputs[1]).shape.size() != 2)
      return false;
    return joins(n, HeadValue::wide);
  }

  bool joins(size_t n, HeadValue value) {
    head_.nodes.push_back(n);
    for (ValueId id : graph_.nodes[n].outputs) head_.values[id.index()] = value;
    return value != HeadValue::none;
  }

  bool add(size_t n) {
    const Node& node = graph_.nodes[n];
    if (node.op->view) return joins(n, view_of(node));
    if (graph::is_matmul(node)) return joins(n, product_of(node));
    if (node.op->role == OpRole::cross_entropy)
      return joins(n, has_row_columns(node) ? HeadValue::rows : HeadValue::none);
    if (node.op->role == OpRole::cross_entropy_backward)
      return joins(n, has_row_columns(node) ? HeadValue::wide : HeadValue::none);
    if (node.op->fold == Fold::sum || node.op->fold == Fold::max)
      return joins(n, reduction_of(node));
    if (is_tileable(graph_, node) && is_row_by_row(node)) return joins(n, HeadValue::wide);
    return false;
  }

  HeadValue view_of(const Node& node) const {
    const ValueId input = node.inputs[0], shown = node.outputs[0];
    if (of(input) != HeadValue::wide) return HeadValue::none;
    if (node.op->role == OpRole::transpose && type(input).shape.size() == 2 &&
        node.attrs.integer("a") != node.attrs.integer("b"))
      return HeadValue::turned;
    const bool is_reshape =
        behind_reshapes(graph_, shown) == behind_reshapes(graph_, input) && has_wide_shape(shown);
    return is_reshape ? HeadValue::wide : HeadValue::none;
  }

  // Logits first, then columns with an element for each row.
  bool has_row_columns(const Node& node) const {
    if (of(node.inputs[0]) != HeadValue::wide) return false;
    return std::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](ValueId id) {
      return type(id).shape == Shape{head_.rows} &&
             (of(id) == HeadValue::none || of(id) == HeadValue::rows);
    });
  }

  // dX = dlogits W keeps rows; dW = dlogits^T X, or X^T dlogits, sums over them.
  HeadValue product_of(const Node& node) const {
    const HeadValue a = of(node.inputs[0]), b = of(node.inputs[1]);
    const Shape &x = type(node.inputs[0]).shape, &y = type(node.inputs[1]).shape;
    if (y.size() != 2 || std::any_of(node.inputs.begin() + 2, node.inputs.end(),
                                     [&](ValueId id) { return of(id) != HeadValue::none; }))
      return HeadValue::none;
    if (a == HeadValue::wide && b == HeadValue::none) return HeadValue::rows;
    if (node.op->role != OpRole::matmul || x.size() != 2) return HeadValue::none;
    if (a == HeadValue::turned && b == HeadValue::none) return HeadValue::sum;
    return a == HeadValue::none && b == HeadValue::wide ? HeadValue::sum : HeadValue::none;
  }

  // Over all axes but the last, or over all.
  HeadValue reduction_of(const Node& node) const {
    const ValueId input = node.inputs[0];
    const int rank = type(input).shape.size();
    const int axes = node.attrs.list("axes").size();
    const bool keeps_last = axes == rank - 1 && type(node.outputs[0]).shape == Shape{columns_};
    if (of(input) != HeadValue::wide || node.attrs.flag("keep_dims") ||
        !(keeps_last || axes == rank))
      return HeadValue::none;
    if (node.op->fold == Fold::max) return HeadValue::largest;
    // Terms in 16 bits would be rounded once for every chunk.
    const DType dtype = type(node.outputs[0]).dtype;
    return dtype == DType::f32 || dtype == DType::f64 ? HeadValue::sum : HeadValue::none;
  }

  // Operands are whole rows of the head, numbers, or a row that all rows share.
  bool is_row_by_row(const Node& node) const {
    if (node.outputs.size() != 1 || !has_wide_shape(node.outputs[0])) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      if (of(id) == HeadValue::wide) return has_wide_shape(id);
      const Shape& shape = type(id).shape;
      return of(id) == HeadValue::none && (shape.empty() || shape == Shape{columns_});
    });
  }

  bool wants_whole_logits() const {
    const auto is_wide = [&](ValueId id) { return is_large(id); };
    return std::any_of(graph_.outputs.begin(), graph_.outputs.end(), is_wide) ||
           std::any_of(graph_.states.begin(), graph_.states.end(),
                       [&](const StateSlot& state) { return is_large(state.after); });
  }

  // True when what others make of the head's results comes back to it.
  bool waits_for_itself() const {
    std::vector<bool> is_behind(graph_.nodes.size(), false);  // by node: it reads the head
    size_t next = 0;
    for (size_t n = head_.nodes.front(); n < graph_.nodes.size(); ++n) {
      const bool is_own = next < head_.nodes.size() && head_.nodes[next] == n;
      if (is_own) ++next;
      for (ValueId id : graph_.nodes[n].inputs) {
        const NodeId maker = graph_.value(id).node;
        if (!maker.valid()) continue;
        const bool is_late = is_behind[maker.index()];
        if (is_own && is_late) return true;
        if (!is_own && (is_late || of(id) != HeadValue::none)) is_behind[n] = true;
      }
    }
    return false;
  }

  const Graph& graph_;
  int64_t columns_ = 0;
  Head head_;
};

}  // namespace

std::optional<Head> find_head(const Graph& graph, size_t cross_entropy) {
  const Node& loss = graph.nodes[cross_entropy];
  return HeadFinder(graph, loss).find(loss);
}

std::optional<int> row_axis(const Graph& graph, const Head& head, const Node& node, int input) {
  const bool is_made_here = head.of(node.inputs[input]) != HeadValue::none;
  if (is_made_here) return {};
  const OpRole role = node.op->role;
  if (role == OpRole::cross_entropy || role == OpRole::cross_entropy_backward) return 0;
  if (!graph::is_matmul(node)) return {};
  const HeadValue result = head.of(node.outputs[0]);
  if (result == HeadValue::wide && input == 0) return 0;  // the operand of the head
  if (result != HeadValue::sum) return {};
  invariant(graph.type(node.inputs[input]).shape.size() == 2, "a sum over rows of no matrix");
  return input == 0 ? 1 : 0;
}

}  // namespace brrr::compiler
