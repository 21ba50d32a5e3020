// Regions become kernels over buffers: views are layouts, fused nodes one call.
#include <algorithm>
#include <optional>
#include <set>

#include "brrr/compiler/codegen/codegen_cuda.h"
#include "brrr/compiler/fuse/region_ends.h"
#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/lower/copy_elision.h"
#include "brrr/compiler/lower/group.h"
#include "brrr/compiler/lower/lower_results.h"

namespace brrr::compiler {
namespace {

class Lowering {
 public:
  Lowering(const Graph& graph, const std::vector<Region>& regions, const LowerOptions& options)
      : graph_(graph),
        regions_(regions),
        options_(options),
        where_(graph.values.size()),
        ends_(graph, options.generated),
        is_new_state_(graph.values.size(), false) {
    for (const StateSlot& state : graph.states)
      is_new_state_[state.after.index()] = state.is_written();
  }

  KernelList run() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i)
      give(graph_.inputs[i].value, Place::input, static_cast<int>(i));
    for (size_t i = 0; i < graph_.states.size(); ++i)
      give(graph_.states[i].before, Place::state, static_cast<int>(i));
    if (options_.strided_outputs)
      landings_ = find_landings(graph_, regions_, options_.strided_outputs);
    for (const Region& region : regions_) add_region(region);
    if (options_.generated) drop_unread_values();
    if (options_.group) group_kernels();
    finish_results(graph_, where_, list_);
    return std::move(list_);
  }

 private:
  void give(ValueId id, Place place, int index) {
    const TensorType& type = graph_.type(id);
    const BufferId buffer = add_buffer(list_, type, place, index);
    list_.buffers.back().value = id;
    where_[id.index()] = {buffer, contiguous_layout(type.shape), type.dtype};
  }
  const OperandRef& where(ValueId id) const { return where_[id.index()]; }

  // A result of an op that runs alone: in order in a buffer of its own, or where it lands.
  void give_result(ValueId id) {
    const auto landing = landings_.of_results.find(id);
    if (landing == landings_.of_results.end()) return give(id, Place::temporary, 0);
    const auto& [whole, layout] = landing->second;
    if (!where(whole).buffer.valid()) give(whole, Place::temporary, 0);
    where_[id.index()] = {where(whole).buffer, layout, graph_.type(id).dtype};
  }
  bool lands_whole(NodeId id) const {
    return options_.strided_outputs && landings_.is_joined[id.index()];
  }

  void group_kernels() {
    RenewedStates renewed;
    for (const StateSlot& state : graph_.states) {
      if (state.is_written()) renewed[where(state.after).buffer] = where(state.before).buffer;
    }
    if (options_.generated) group_reductions(list_, renewed);
    group_programs(list_, renewed);
  }

  // ---- kernels ----
  KernelPart part_of(const Node& node) const {
    int64_t elements = 0;
    for (const ValueIds* ids : {&node.inputs, &node.outputs}) {
      for (ValueId id : *ids) elements = std::max(elements, numel(graph_.type(id).shape));
    }
    return {node.op, elements};
  }

  void add_region(const Region& region) {
    const Node& first = graph_.node(region.nodes.front());
    if (first.op->view && region.nodes.size() == 1) {
      const OperandRef& source = where(first.inputs[0]);
      where_[first.outputs[0].index()] = {source.buffer, first.op->view(source.layout, first.attrs),
                                          source.dtype};
      return;
    }
    if (first.op->role == OpRole::copy && region.nodes.size() == 1 &&
        where(first.inputs[0]).layout.is_contiguous()) {
      OperandRef source = where(first.inputs[0]);  // values never change: no copy
      const int64_t offset = source.layout.offset;
      source.layout = contiguous_layout(source.layout.shape);
      source.layout.offset = offset;
      where_[first.outputs[0].index()] = source;
      return;
    }
    if (lands_whole(region.nodes.front())) return;
    if (region.core.valid()) {
      add_core(region);
    } else if (region.nodes.size() == 1 && !(options_.generated && is_tileable(graph_, first))) {
      add_op(first);
    } else {
      add_program(region);
    }
    for (NodeId id : region.nodes) {
      if (!graph_.node(id).op->view) list_.kernels.back().parts.push_back(part_of(graph_.node(id)));
    }
  }

  void add_op(const Node& node) {
    Kernel kernel{.op = node.op,
                  .attrs = node.attrs,
                  .phase = node.phase,
                  .cost = graph::cost_of(graph_, node),
                  .name = std::string(node.op->name)};
    kernel.body_graph = node.body;
    for (ValueId id : node.inputs) kernel.inputs.push_back(node.body ? in_order(id) : where(id));
    for (ValueId id : node.outputs) {
      give_result(id);
      kernel.outputs.push_back(where(id));
    }
    list_.kernels.push_back(std::move(kernel));
  }

  // The value with its elements in order, as the kernels of a body expect them, and where a buffer may begin:
  // they are chosen for such addresses.
  OperandRef in_order(ValueId id) {
    constexpr int64_t kWidestAccess = 16;
    const OperandRef& ref = where(id);
    if (ref.layout.is_contiguous() &&
        storage_bytes(ref.dtype, ref.layout.offset) % kWidestAccess == 0)
      return ref;
    const TensorType& type = graph_.type(id);
    const OperandRef copy{add_buffer(list_, type, Place::temporary, 0),
                          contiguous_layout(type.shape), type.dtype};
    add_copy(list_, ref, copy);
    return copy;
  }

  // Of a program over `shape`.
  int add_input(Kernel& kernel, ValueId id, const Shape& shape) const {
    const NodeId maker = graph_.value(id).node;
    if (options_.generated && maker.valid() && graph_.node(maker).op->role == OpRole::place_slice) {
      if (const std::optional<OperandRef> placed = placed_operand(graph_.node(maker), shape)) {
        kernel.inputs.push_back(*placed);
        kernel.cost.bytes_read += bytes_of(graph_.node(maker).inputs[0]);
        return static_cast<int>(kernel.inputs.size()) - 1;
      }
    }
    kernel.inputs.push_back(where(id));
    kernel.cost.bytes_read += bytes_of(id);
    return static_cast<int>(kernel.inputs.size()) - 1;
  }

  // The source of a place_slice, so that a generated kernel reads it in place of a mostly empty copy.
  std::optional<OperandRef> placed_operand(const Node& node, const Shape& shape) const {
    const Shape& whole = graph_.type(node.outputs[0]).shape;
    const Axes& range = node.attrs.list("range");
    if (whole != shape || range[2] != 1 || numel(graph_.type(node.inputs[0]).shape) == 0) return {};
    const int axis = normalize_axis(node.attrs.integer("axis"), whole.size(), "place_slice");
    const Layout all = contiguous_layout(whole);
    const Layout hole = slice_layout(all, axis, {range[0], range[1], range[2]});
    OperandRef ref = where(node.inputs[0]);
    ref.placed = {.axis = axis, .start = hole.offset / all.strides[axis], .shape = whole};
    return ref;
  }
  int add_output(Kernel& kernel, ValueId id) {
    give(id, Place::temporary, 0);
    kernel.outputs.push_back(where(id));
    kernel.cost.bytes_written += bytes_of(id);
    return static_cast<int>(kernel.outputs.size()) - 1;
  }
  void add_work(Kernel& kernel, std::span<const NodeId> nodes) const {
    for (NodeId id : nodes) {
      const Node& node = graph_.node(id);
      kernel.cost.flops += graph::cost_of(graph_, node).flops;
      kernel.name += join_text(kernel.name.empty() ? "" : "+", node.op->name);
    }
  }

  void add_program(const Region& region) {
    Kernel kernel{.phase = graph_.node(region.nodes.back()).phase};
    const TileProgramEnds ends = ends_.of(region.nodes, region, {});
    add_work(kernel, region.nodes);
    const Shape& shape = graph_.type(graph_.node(region.nodes.front()).outputs[0]).shape;
    for (ValueId id : ends.inputs) add_input(kernel, id, shape);
    for (ValueId id : ends.outputs) add_output(kernel, id);
    kernel.program = std::make_shared<TileProgram>(graph_, region.nodes, ends);
    list_.kernels.push_back(std::move(kernel));
  }

  // Numbers that programs have in their text need no memory, nor do slices that they place themselves.
  void drop_unread_values() {
    std::set<int32_t> read;
    for (const Kernel& kernel : list_.kernels) {
      for (const OperandRef& ref : kernel.inputs) read.insert(ref.buffer.value);
    }
    for (size_t v = 0; v < where_.size(); ++v) {
      if (ends_.is_result(ValueId(v))) read.insert(where_[v].buffer.value);
    }
    std::erase_if(list_.kernels, [&](const Kernel& kernel) {
      const bool is_optional =
          kernel.op && (is_constant(*kernel.op) || kernel.role() == OpRole::place_slice);
      if (!is_optional || read.count(kernel.outputs[0].buffer.value)) return false;
      list_.buffers[kernel.outputs[0].buffer.index()].bytes = 0;
      return true;
    });
  }

  // ---- a core with what is attached to it ----
  void add_core(const Region& region) {
    const Node& node = graph_.node(region.core);
    Kernel kernel{.op = node.op, .attrs = node.attrs, .phase = node.phase};
    add_work(kernel, region.prologue.nodes);
    add_work(kernel, {&region.core, 1});
    add_work(kernel, region.epilogue.nodes);
    // The op may touch less of an operand than there is (rows of a table): its own price counts.
    const Cost own = graph::cost_of(graph_, node);
    for (int i = 0; i < node.inputs.size(); ++i) {
      const TensorType& type = graph_.type(node.inputs[i]);
      kernel.core_inputs.push_back({.layout = contiguous_layout(type.shape), .dtype = type.dtype});
      if (i == region.prologue.operand) continue;
      kernel.inputs.push_back(where(node.inputs[i]));
      kernel.core_inputs.back() = {.index = static_cast<int>(kernel.inputs.size()) - 1,
                                   .layout = kernel.inputs.back().layout,
                                   .dtype = type.dtype};
    }
    for (ValueId id : node.outputs)
      kernel.core_outputs.push_back(
          {.layout = contiguous_layout(graph_.type(id).shape), .dtype = graph_.type(id).dtype});
    if (region.prologue.is_used()) attach_prologue(kernel, region);
    for (int i = 0; i < node.outputs.size(); ++i) {
      if (i != region.epilogue.operand)
        kernel.core_outputs[static_cast<size_t>(i)].index = add_output(kernel, node.outputs[i]);
    }
    if (region.epilogue.is_used()) attach_epilogue(kernel, region);
    kernel.cost.bytes_read += own.bytes_read;
    if (region.prologue.is_used()) kernel.cost.bytes_read -= bytes_of(region.prologue.value);
    alias_views(region);
    list_.kernels.push_back(std::move(kernel));
  }

  void attach_prologue(Kernel& kernel, const Region& region) {
    TileProgramEnds ends = ends_.of(region.prologue.nodes, region, {});
    ends.captured = region.prologue.value;
    kernel.core_inputs[static_cast<size_t>(region.prologue.operand)].attachment =
        static_cast<int>(kernel.attachments.size());
    add_attachment(kernel, region.prologue.nodes, ends);
  }

  void attach_epilogue(Kernel& kernel, const Region& region) {
    const auto& [nodes, operand, given] = region.epilogue;
    const Node& node = graph_.node(region.core);
    const ValueId result = node.outputs[operand];
    TileProgramEnds ends = ends_.of(nodes, region, given);
    CoreOperand& core = kernel.core_outputs[static_cast<size_t>(operand)];
    core.attachment = static_cast<int>(kernel.attachments.size());
    const bool is_kept = ends_.is_used_outside(result, region);
    if (is_kept && node.op->streams.lands) core.index = add_output(kernel, result);
    if (is_kept && !node.op->streams.lands) ends.outputs.push_back(given);
    Attachment& attachment = add_attachment(kernel, nodes, ends);
    if (is_kept && !node.op->streams.lands) where_[result.index()] = whole_of(given, result);
    if (!node.op->streams.lands || is_kept) return;
    for (size_t i = 0; i < ends.outputs.size() && attachment.landing < 0; ++i) {
      // A new state is better computed in the place of the old one, which the program reads until then.
      if (graph_.type(ends.outputs[i]).dtype != core.dtype ||
          is_new_state_[ends.outputs[i].index()])
        continue;
      attachment.landing = static_cast<int>(i);
      core.index = attachment.outputs[i];
    }
    if (attachment.landing < 0) core.index = add_output(kernel, result);
  }

  // The buffer of a value, seen as another of as many elements.
  OperandRef whole_of(ValueId id, ValueId as) const {
    return {where(id).buffer, contiguous_layout(graph_.type(as).shape), graph_.type(as).dtype};
  }

  Attachment& add_attachment(Kernel& kernel, std::span<const NodeId> nodes,
                             const TileProgramEnds& ends) {
    Attachment attachment{.program = std::make_shared<TileProgram>(graph_, nodes, ends)};
    const Shape& shape = graph_.type(graph_.node(nodes.front()).outputs[0]).shape;
    for (ValueId id : ends.inputs) attachment.inputs.push_back(add_input(kernel, id, shape));
    for (ValueId id : ends.outputs) attachment.outputs.push_back(add_output(kernel, id));
    kernel.attachments.push_back(std::move(attachment));
    return kernel.attachments.back();
  }

  // Views inside the region show buffers where what they show is in memory; nobody needs the others.
  void alias_views(const Region& region) {
    for (NodeId id : region.nodes) {
      const Node& node = graph_.node(id);
      if (!node.op->view || !where(node.inputs[0]).buffer.valid()) continue;
      const OperandRef& source = where(node.inputs[0]);
      where_[node.outputs[0].index()] = {source.buffer, node.op->view(source.layout, node.attrs),
                                         source.dtype};
    }
  }

  int64_t bytes_of(ValueId id) const {
    return storage_bytes(graph_.type(id).dtype, numel(graph_.type(id).shape));
  }

  const Graph& graph_;
  const std::vector<Region>& regions_;
  const LowerOptions options_;
  std::vector<OperandRef> where_;  // by value
  const RegionEnds ends_;
  std::vector<bool> is_new_state_;  // by value: what a state is in the end
  Landings landings_;
  KernelList list_;
};

}  // namespace

KernelList lower(const Graph& graph, const std::vector<Region>& regions,
                 const LowerOptions& options) {
  return Lowering(graph, regions, options).run();
}

}  // namespace brrr::compiler
