#include "brrr/compiler/lower/copy_elision.h"

#include <algorithm>
#include <optional>

namespace brrr::compiler {
namespace {

constexpr int64_t kChunkBytes = 16;  // what a thread writes at once

class LandingFinder {
 public:
  LandingFinder(const Graph& graph, const std::vector<Region>& regions,
                uint32_t (*strided_outputs)(const OpDef& op))
      : graph_(graph),
        strided_outputs_(strided_outputs),
        is_alone_(graph.nodes.size(), false),
        is_result_(graph.values.size(), false) {
    for (const Region& region : regions) {
      if (region.nodes.size() == 1 && !region.core.valid())
        is_alone_[region.nodes[0].index()] = true;
    }
    for (ValueId id : graph.outputs) is_result_[id.index()] = true;
    for (const StateSlot& state : graph.states) is_result_[state.after.index()] = true;
    found_.is_joined.resize(graph.nodes.size(), false);
  }

  Landings run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].op->role == OpRole::concat && is_alone_[n]) try_join(n);
    }
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].op->role == OpRole::copy && is_alone_[n]) try_order(graph_.nodes[n]);
    }
    return std::move(found_);
  }

 private:
  // A result, and where its elements are in what views make of it.
  struct Seen {
    ValueId result;
    Layout layout;
  };

  // The result behind `id` that may land: nothing but views lies between them.
  std::optional<Seen> result_behind(ValueId id) const {
    std::vector<const Node*> views;
    ValueId result = id;
    for (;;) {
      const NodeId maker = graph_.value(result).node;
      if (!maker.valid()) return {};
      const Node& node = graph_.node(maker);
      if (!node.op->view) break;
      views.push_back(&node);
      result = node.inputs[0];
    }
    const NodeId maker = graph_.value(result).node;
    if (!is_alone_[maker.index()] || !may_write(graph_.node(maker), result) ||
        is_result_[result.index()] || found_.of_results.count(result))
      return {};
    Seen seen{result, contiguous_layout(graph_.type(result).shape)};
    for (size_t v = views.size(); v-- > 0;)
      seen.layout = views[v]->op->view(seen.layout, views[v]->attrs);
    return seen;
  }

  bool may_write(const Node& node, ValueId result) const {
    for (int i = 0; i < node.outputs.size(); ++i) {
      // A repeat may have more results than the mask has bits; none of them lands.
      if (node.outputs[i] == result) return i < 32 && (strided_outputs_(*node.op) >> i & 1U) != 0;
    }
    return false;
  }

  // Where the result lies if what is seen of it lies at `target`: every axis of more than one element is an axis there.
  std::optional<Layout> landing_of(const Seen& seen, const Layout& target) const {
    const TensorType& type = graph_.type(seen.result);
    if (numel(target.shape) != numel(type.shape) || numel(type.shape) == 0) return {};
    Layout layout = contiguous_layout(type.shape);
    Strides strides = layout.strides;
    for (int axis = 0; axis < layout.rank(); ++axis) {
      strides[axis] = 0;
      if (layout.shape[axis] == 1) continue;
      int there = 0;
      while (there < target.rank() && (seen.layout.strides[there] != layout.strides[axis] ||
                                       seen.layout.shape[there] != layout.shape[axis]))
        ++there;
      if (there == target.rank()) return {};
      strides[axis] = target.strides[there];
    }
    layout.strides = strides;
    layout.offset = target.offset;
    return is_chunked(layout, type.dtype) ? std::optional(layout) : std::nullopt;
  }

  // Rows are in order, and begin at multiples of what a thread writes.
  static bool is_chunked(const Layout& layout, DType dtype) {
    const auto is_whole = [&](int64_t elements) {
      return storage_bytes(dtype, elements) % kChunkBytes == 0;
    };
    const int last = layout.rank() - 1;
    if (last < 0 || layout.strides[last] != 1 || !is_whole(layout.offset)) return false;
    return std::all_of(layout.strides.begin(), layout.strides.begin() + last, is_whole);
  }

  void try_join(size_t n) {
    const Node& node = graph_.nodes[n];
    const ValueId whole = node.outputs[0];
    const TensorType& type = graph_.type(whole);
    if (is_result_[whole.index()]) return;
    const Layout all = contiguous_layout(type.shape);
    const int axis = normalize_axis(node.attrs.integer("axis"), all.rank(), "concat");
    std::map<ValueId, Landing> parts;
    int64_t start = 0;
    for (ValueId id : node.inputs) {
      const int64_t stop = start + graph_.type(id).shape[axis];
      const std::optional<Seen> seen = result_behind(id);
      if (!seen || graph_.type(id).dtype != type.dtype || parts.count(seen->result)) return;
      const std::optional<Layout> layout =
          landing_of(*seen, slice_layout(all, axis, {start, stop}));
      if (!layout) return;
      parts[seen->result] = {whole, *layout};
      start = stop;
    }
    found_.of_results.merge(parts);
    found_.is_joined[n] = true;
  }

  void try_order(const Node& copy) {
    const std::optional<Seen> seen = result_behind(copy.inputs[0]);
    if (!seen) return;
    if (const std::optional<Layout> layout =
            landing_of(*seen, contiguous_layout(graph_.type(copy.outputs[0]).shape)))
      found_.of_results[seen->result] = {seen->result, *layout};
  }

  const Graph& graph_;
  uint32_t (*const strided_outputs_)(const OpDef& op);
  std::vector<bool> is_alone_;   // by node: in a region of its own
  std::vector<bool> is_result_;  // by value: read when all nodes have run
  Landings found_;
};

}  // namespace

Landings find_landings(const Graph& graph, const std::vector<Region>& regions,
                       uint32_t (*strided_outputs)(const OpDef& op)) {
  return LandingFinder(graph, regions, strided_outputs).run();
}

}  // namespace brrr::compiler
