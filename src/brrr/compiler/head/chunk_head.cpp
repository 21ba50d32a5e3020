#include "brrr/compiler/head/chunk_head.h"

#include <algorithm>
#include <map>
#include <utility>

#include "brrr/compiler/head/head_rows.h"
#include "brrr/compiler/rewrite/graph_builder.h"
#include "brrr/compiler/rewrite/matmul_graph.h"
#include "brrr/ops/op_list.h"

namespace brrr::compiler {
namespace {

// Writes a graph anew with the head in chunks, at the place of the product that makes logits.
class Chunker {
 public:
  Chunker(const Graph& graph, const Head& head, int64_t rows)
      : from_(graph),
        head_(head),
        chunk_rows_(rows),
        products_(graph),
        is_done_(graph.nodes.size(), false),
        now_(graph.values.size()),
        parts_(graph.values.size()) {}

  Graph run() {
    begin_graph(to_.graph, from_,
                [&](ValueId id) { return now_[id.index()] = to_.graph.add_value(from_.type(id)); });
    for (size_t n = 0; n < from_.nodes.size(); ++n) {
      if (n == head_.nodes.front()) add_chunks();
      if (!is_done_[n]) copy(n);
    }
    end_graph(to_.graph, from_, [&](ValueId id) { return now_[id.index()]; });
    return std::move(to_.graph);
  }

 private:
  void copy(size_t n) {
    const Node& node = from_.nodes[n];
    ValueIds inputs;
    for (ValueId id : node.inputs) inputs.push_back(now_[id.index()]);
    const NodeId made = to_.graph.add_copy(from_, node, inputs);
    for (int i = 0; i < node.outputs.size(); ++i)
      now_[node.outputs[i].index()] = to_.graph.node(made).outputs[i];
    is_done_[n] = true;
  }

  // No second run is asked for: what a chunk needs in its backward part was made a moment before.
  void set_place(const Node& node) { to_.set_place(node.phase, node.scope); }

  void add_chunks() {
    make_operands();
    for (int64_t start = 0; start < head_.rows; start += chunk_rows_) {
      const int64_t stop = std::min(start + chunk_rows_, head_.rows);
      pieces_.clear();
      for (size_t n : head_.nodes) add_part(from_.nodes[n], start, stop);
    }
    for (size_t n : head_.nodes) join_parts(n);
  }

  // What the head reads of others, the gradient of its losses too, and all that it is made of.
  void make_operands() {
    std::vector<size_t> pending;
    const auto ask = [&](const Node& node) {
      const size_t before = pending.size();
      for (ValueId id : node.inputs) {
        const NodeId maker = from_.value(id).node;
        if (maker.valid() && !is_done_[maker.index()]) pending.push_back(maker.index());
      }
      return pending.size() > before;
    };
    for (size_t n : head_.nodes) is_done_[n] = true;
    for (size_t n : head_.nodes) {
      ask(from_.nodes[n]);
      while (!pending.empty()) {
        const size_t next = pending.back();
        if (is_done_[next]) {
          pending.pop_back();
        } else if (!ask(from_.nodes[next])) {
          copy(next);
        }
      }
    }
  }

  // ---- one node for the rows [start, stop) ----
  void add_part(const Node& node, int64_t start, int64_t stop) {
    const ValueId result = node.outputs[0];
    set_place(node);
    if (node.op->view) {
      // Chunks are matrices, so that reshapes change nothing.
      const ValueId shown = part(node.inputs[0]);
      const bool turns = head_.of(result) == HeadValue::turned;
      add_piece(result, turns ? to_.add(transpose_op, {shown}, turned_attrs()) : shown);
      return;
    }
    ValueIds inputs;
    for (int i = 0; i < node.inputs.size(); ++i) {
      const std::optional<int> axis = row_axis(from_, head_, node, i);
      inputs.push_back(axis ? piece(node.inputs[i], *axis, start, stop) : part(node.inputs[i]));
    }
    const ValueIds made = to_.add_all(*node.op, inputs, attrs_of(node));
    for (int i = 0; i < node.outputs.size(); ++i) add_piece(node.outputs[i], made[i]);
  }

  static Attrs turned_attrs() { return {{"a", int64_t{0}}, {"b", int64_t{1}}}; }

  Attrs attrs_of(const Node& node) const {
    const TensorType& type = from_.type(node.outputs[0]);
    if (node.op->fold == Fold::sum || node.op->fold == Fold::max) {
      const Axes axes = type.shape.empty() ? Axes{0, 1} : Axes{0};
      return with_attr(node.attrs, {"axes", axes});
    }
    // Terms of a sum in 16 bits are kept in f32, and rounded when all are there.
    const bool is_term = graph::is_matmul(node) && head_.of(node.outputs[0]) == HeadValue::sum;
    return is_term && is_low(type.dtype) ? with_attr(node.attrs, {"dtype", DType::f32})
                                         : node.attrs;
  }
  static bool is_low(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

  // This chunk's part of a value of the head, or the whole of another.
  ValueId part(ValueId id) const {
    return head_.of(id) == HeadValue::none ? now_[id.index()] : parts_[id.index()].back();
  }

  // The rows of a value that others make; each is cut once.
  ValueId piece(ValueId id, int axis, int64_t start, int64_t stop) {
    ValueId& known = pieces_[{id.value, axis}];
    if (known.valid()) return known;
    return known = to_.add(
               slice_op, {as_matrix(id)},
               {{"axis", int64_t{axis}}, {"start", start}, {"stop", stop}, {"step", int64_t{1}}});
  }

  ValueId as_matrix(ValueId id) {
    const Shape& shape = from_.type(id).shape;
    if (shape.size() <= 2) return now_[id.index()];
    ValueId& known = matrices_[id.value];
    if (known.valid()) return known;
    ValueId x = now_[id.index()];
    if (!products_.layout_of(id).is_contiguous()) x = to_.add(copy_op, {x});
    return known = to_.add(view_op, {x}, {{"shape", Axes{head_.rows, shape.back()}}});
  }

  void add_piece(ValueId id, ValueId made) {
    std::vector<ValueId>& parts = parts_[id.index()];
    const HeadValue value = head_.of(id);
    if (parts.empty() || (value != HeadValue::sum && value != HeadValue::largest)) {
      parts.push_back(made);
      return;
    }
    // The product first: an addition goes behind it.
    parts[0] = to_.add(value == HeadValue::sum ? add_op : maximum_op, {made, parts[0]});
  }

  // ---- what others read of the head ----
  void join_parts(size_t n) {
    const Node& node = from_.nodes[n];
    set_place(node);
    for (ValueId id : node.outputs) {
      const HeadValue value = head_.of(id);
      if (value == HeadValue::wide || value == HeadValue::turned || !is_read_outside(id)) continue;
      const TensorType& type = from_.type(id);
      ValueId whole = parts_[id.index()][0];
      if (value == HeadValue::rows) whole = concat(parts_[id.index()]);
      if (to_.type(whole).shape != type.shape)
        whole = to_.add(view_op, {whole}, {{"shape", type.shape}});
      now_[id.index()] = to_.cast(whole, type.dtype);
    }
  }

  ValueId concat(const std::vector<ValueId>& parts) {
    return to_.add(concat_op, ValueIds(std::span<const ValueId>(parts)), {{"axis", int64_t{0}}});
  }

  bool is_read_outside(ValueId id) const {
    const auto is_own = [&](NodeId reader) {
      return std::binary_search(head_.nodes.begin(), head_.nodes.end(), reader.index());
    };
    const std::vector<NodeId>& readers = products_.uses(id);
    return std::find(from_.outputs.begin(), from_.outputs.end(), id) != from_.outputs.end() ||
           std::any_of(from_.states.begin(), from_.states.end(),
                       [&](const StateSlot& state) { return state.after == id; }) ||
           !std::all_of(readers.begin(), readers.end(), is_own);
  }

  const Graph& from_;
  const Head& head_;
  const int64_t chunk_rows_;
  const ProductGraph products_;
  GraphBuilder to_;
  std::vector<bool> is_done_;                // by old node
  std::vector<ValueId> now_;                 // by old value: what stands for it
  std::vector<std::vector<ValueId>> parts_;  // by old value of the head: one a chunk, or one sum
  std::map<std::pair<int32_t, int>, ValueId> pieces_;  // of this chunk, by old value and axis
  std::map<int32_t, ValueId> matrices_;                // by old value
};

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

int64_t chunk_rows(int64_t rows, int64_t row_bytes, const ChunkHeadOptions& options) {
  const int64_t multiple = options.row_multiple;
  const int64_t fitting = options.chunk_bytes / std::max<int64_t>(row_bytes, 1);
  const int64_t most = std::max(options.min_rows, fitting / multiple * multiple);
  const int64_t fewest = std::min(divide_up(rows, most), rows / options.min_rows);
  if (fewest < 2) return rows;
  for (int64_t count = fewest; count <= 2 * fewest; ++count) {
    if (rows % (count * multiple) == 0 && rows / count >= options.min_rows) return rows / count;
  }
  return divide_up(divide_up(rows, fewest), multiple) * multiple;
}

Graph chunk_heads(const Graph& graph, const ChunkHeadOptions& options) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op->role != OpRole::cross_entropy) continue;
    const Shape& logits = graph.type(graph.nodes[n].inputs[0]).shape;
    const int64_t row_bytes = storage_bytes(graph.type(graph.nodes[n].inputs[0]).dtype, logits[1]);
    if (chunk_rows(logits[0], row_bytes, options) >= logits[0]) continue;
    const std::optional<Head> head = find_head(graph, n);
    if (!head) continue;
    const Graph chunked =
        Chunker(graph, *head, chunk_rows(head->rows, head->row_bytes, options)).run();
    return chunk_heads(chunked, options);  // a model may have another; chunks are small enough
  }
  return graph;
}

}  // namespace brrr::compiler
