#include <algorithm>

#include "brrr/compiler/kernel_list.h"
#include "brrr/ops/op_list.h"

namespace brrr {
namespace {

class Lowering {
 public:
  Lowering(const Graph& graph, const std::vector<Region>& regions)
      : graph_(graph), regions_(regions), where_(graph.values.size()), uses_(uses_of(graph)) {}

  KernelList run() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i)
      give(graph_.inputs[i].value, Place::input, static_cast<int>(i));
    for (size_t i = 0; i < graph_.states.size(); ++i)
      give(graph_.states[i].before, Place::state, static_cast<int>(i));
    for (const Region& region : regions_) add_region(region);
    finish_states_in_place();
    finish_outputs();
    finish_states_by_copy();
    return std::move(list_);
  }

 private:
  BufferId new_buffer(const TensorType& type, Place place, int index) {
    list_.buffers.push_back({storage_bytes(type.dtype, numel(type.shape)), place, index});
    return BufferId(list_.buffers.size() - 1);
  }
  void give(ValueId id, Place place, int index) {
    const TensorType& type = graph_.type(id);
    where_[id.index()] = {new_buffer(type, place, index), contiguous_layout(type.shape),
                          type.dtype};
  }
  const OperandRef& where(ValueId id) const { return where_[id.index()]; }

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
    if (first.op->view) {
      const OperandRef& source = where(first.inputs[0]);
      where_[first.outputs[0].index()] = {source.buffer, first.op->view(source.layout, first.attrs),
                                          source.dtype};
      return;
    }
    if (first.op == &copy_op && region.nodes.size() == 1 &&
        where(first.inputs[0]).layout.is_contiguous()) {
      where_[first.outputs[0].index()] = where(first.inputs[0]);  // values never change: no copy
      return;
    }
    if (region.nodes.size() == 1) {
      add_op(first);
    } else {
      add_program(region);
    }
    for (NodeId id : region.nodes) list_.kernels.back().parts.push_back(part_of(graph_.node(id)));
  }

  void add_op(const Node& node) {
    Kernel kernel{.op = node.op,
                  .attrs = node.attrs,
                  .phase = node.phase,
                  .cost = cost_of(graph_, node),
                  .name = std::string(node.op->name)};
    for (ValueId id : node.inputs) kernel.inputs.push_back(where(id));
    for (ValueId id : node.outputs) {
      give(id, Place::temporary, 0);
      kernel.outputs.push_back(where(id));
    }
    list_.kernels.push_back(std::move(kernel));
  }

  bool is_used_outside(ValueId id, const Region& region) const {
    const auto is_inside = [&](NodeId node) {
      return std::binary_search(region.nodes.begin(), region.nodes.end(), node);
    };
    for (NodeId user : uses_[id.index()]) {
      if (!is_inside(user)) return true;
    }
    const auto is_after = [&](const StateSlot& state) { return state.after == id; };
    return std::find(graph_.outputs.begin(), graph_.outputs.end(), id) != graph_.outputs.end() ||
           std::any_of(graph_.states.begin(), graph_.states.end(), is_after);
  }

  void add_program(const Region& region) {
    std::vector<ValueId> inputs, outputs;
    Kernel kernel{.phase = graph_.node(region.nodes.back()).phase};
    for (NodeId id : region.nodes) {
      const Node& node = graph_.node(id);
      for (ValueId input : node.inputs) {
        const NodeId maker = graph_.value(input).node;
        const bool inside =
            maker.valid() && std::binary_search(region.nodes.begin(), region.nodes.end(), maker);
        if (!inside && std::find(inputs.begin(), inputs.end(), input) == inputs.end())
          inputs.push_back(input);
      }
      kernel.cost.flops += cost_of(graph_, node).flops;
      if (!kernel.name.empty()) kernel.name += '+';
      kernel.name += node.op->name;
    }
    for (NodeId id : region.nodes) {
      const ValueId output = graph_.node(id).outputs[0];
      if (is_used_outside(output, region)) outputs.push_back(output);
    }
    for (ValueId id : inputs) {
      kernel.inputs.push_back(where(id));
      kernel.cost.bytes_read += bytes_of(id);
    }
    for (ValueId id : outputs) {
      give(id, Place::temporary, 0);
      kernel.outputs.push_back(where(id));
      kernel.cost.bytes_written += bytes_of(id);
    }
    kernel.program = std::make_shared<TileProgram>(graph_, region, inputs, outputs);
    list_.kernels.push_back(std::move(kernel));
  }

  int64_t bytes_of(ValueId id) const {
    return storage_bytes(graph_.type(id).dtype, numel(graph_.type(id).shape));
  }

  // ---- results ----
  bool is_whole_temporary(ValueId id) const {
    const OperandRef& ref = where(id);
    return list_.buffers[ref.buffer.index()].place == Place::temporary &&
           ref.layout == contiguous_layout(graph_.type(id).shape) &&
           list_.buffers[ref.buffer.index()].bytes == bytes_of(id);
  }

  // A kernel may write over an operand that it reads element by element in the same order.
  static bool may_overwrite(const Kernel& kernel, BufferId buffer, const OperandRef& output) {
    for (size_t i = 0; i < kernel.inputs.size(); ++i) {
      const OperandRef& input = kernel.inputs[i];
      if (input.buffer != buffer) continue;
      if (input.layout != output.layout || input.dtype != output.dtype) return false;
      const bool elementwise = kernel.program || kernel.op->tiles;
      const bool updates = kernel.op == &update_view_op && i == 0;
      if (!elementwise && !updates) return false;
    }
    return true;
  }

  bool is_read_at_the_end(BufferId buffer, size_t own_state) const {
    for (ValueId id : graph_.outputs) {
      if (where(id).buffer == buffer) return true;
    }
    for (size_t i = 0; i < graph_.states.size(); ++i) {
      const StateSlot& state = graph_.states[i];
      if (i != own_state && state.is_written() && where(state.after).buffer == buffer) return true;
    }
    return false;
  }

  bool can_be_in_place(size_t s) const {
    const StateSlot& state = graph_.states[s];
    const BufferId old = where(state.before).buffer, made = where(state.after).buffer;
    if (!is_whole_temporary(state.after) || is_read_at_the_end(old, s)) return false;
    bool produced = false;
    for (const Kernel& kernel : list_.kernels) {
      if (produced) {
        for (const OperandRef& input : kernel.inputs) {
          if (input.buffer == old) return false;  // somebody still needs the old value
        }
      }
      for (const OperandRef& output : kernel.outputs) {
        if (output.buffer != made) continue;
        if (!may_overwrite(kernel, old, output)) return false;
        produced = true;
      }
    }
    return produced;
  }

  void finish_states_in_place() {
    for (size_t s = 0; s < graph_.states.size(); ++s) {
      const StateSlot& state = graph_.states[s];
      if (!state.is_written() || !can_be_in_place(s)) continue;
      rename(where(state.after).buffer, where(state.before).buffer);
      in_place_.push_back(s);
    }
  }

  void rename(BufferId from, BufferId to) {
    const auto apply = [&](OperandRef& ref) {
      if (ref.buffer == from) ref.buffer = to;
    };
    for (Kernel& kernel : list_.kernels) {
      for (OperandRef& ref : kernel.inputs) apply(ref);
      for (OperandRef& ref : kernel.outputs) apply(ref);
    }
    for (OperandRef& ref : where_) apply(ref);
    list_.buffers[from.index()].bytes = 0;
  }

  void add_copy(const OperandRef& from, const OperandRef& to) {
    const int64_t bytes = storage_bytes(to.dtype, numel(to.layout.shape));
    list_.kernels.push_back({.op = &copy_op,
                             .inputs = {from},
                             .outputs = {to},
                             .phase = Phase::update,
                             .cost = {.bytes_read = bytes, .bytes_written = bytes},
                             .name = "copy",
                             .parts = {{&copy_op, numel(to.layout.shape)}}});
  }

  void finish_outputs() {
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const ValueId id = graph_.outputs[i];
      const TensorType& type = graph_.type(id);
      list_.outputs.push_back(type);
      if (is_whole_temporary(id) && !is_state_source(where(id).buffer)) {
        Buffer& buffer = list_.buffers[where(id).buffer.index()];
        buffer.place = Place::output;
        buffer.index = static_cast<int>(i);
      } else {
        const BufferId buffer = new_buffer(type, Place::output, static_cast<int>(i));
        add_copy(where(id), {buffer, contiguous_layout(type.shape), type.dtype});
      }
    }
  }

  bool is_state_source(BufferId buffer) const {
    return std::any_of(graph_.states.begin(), graph_.states.end(), [&](const StateSlot& state) {
      return state.is_written() && where(state.after).buffer == buffer;
    });
  }

  // Sources that are states themselves are saved before the first state is overwritten.
  void finish_states_by_copy() {
    std::vector<std::pair<OperandRef, OperandRef>> copies;
    for (size_t s = 0; s < graph_.states.size(); ++s) {
      const StateSlot& state = graph_.states[s];
      const bool done = std::find(in_place_.begin(), in_place_.end(), s) != in_place_.end();
      if (!state.is_written() || done) continue;
      OperandRef from = where(state.after);
      if (list_.buffers[from.buffer.index()].place == Place::state) {
        const TensorType& type = graph_.type(state.after);
        const OperandRef saved{new_buffer(type, Place::temporary, 0), contiguous_layout(type.shape),
                               type.dtype};
        add_copy(from, saved);
        from = saved;
      }
      copies.emplace_back(from, where(state.before));
    }
    for (const auto& [from, to] : copies) add_copy(from, to);
  }

  const Graph& graph_;
  const std::vector<Region>& regions_;
  std::vector<OperandRef> where_;  // by value
  std::vector<std::vector<NodeId>> uses_;
  std::vector<size_t> in_place_;  // states whose new value is computed where the old one was
  KernelList list_;
};

}  // namespace

KernelList lower(const Graph& graph, const std::vector<Region>& regions) {
  return Lowering(graph, regions).run();
}

void select_workspaces(KernelList& list, ThreadPool& pool) {
  for (Kernel& kernel : list.kernels) {
    if (!kernel.op || !kernel.op->workspace) continue;
    std::vector<Operand> inputs, outputs;
    for (const OperandRef& ref : kernel.inputs) inputs.push_back({nullptr, &ref.layout, ref.dtype});
    for (const OperandRef& ref : kernel.outputs)
      outputs.push_back({nullptr, &ref.layout, ref.dtype});
    const int64_t bytes =
        kernel.op->workspace({*kernel.op, inputs, outputs, kernel.attrs, {}, pool});
    if (bytes == 0) continue;
    list.buffers.push_back({.bytes = bytes});
    kernel.workspace = BufferId(list.buffers.size() - 1);
  }
}

}  // namespace brrr
