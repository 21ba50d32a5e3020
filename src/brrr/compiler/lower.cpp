#include <algorithm>
#include <optional>

#include "brrr/compiler/plan_memory.h"
#include "brrr/graph/repeat.h"
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
    find_results();
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
    if (region.nodes.size() == 1) return add_op(first);
    add_program(region);
  }

  void add_op(const Node& node) {
    Kernel kernel{.op = node.op,
                  .attrs = node.attrs,
                  .phase = node.phase,
                  .cost = cost_of(graph_, node),
                  .name = std::string(node.op->name)};
    kernel.body_graph = node.body;
    for (ValueId id : node.inputs) kernel.inputs.push_back(node.body ? in_order(id) : where(id));
    for (ValueId id : node.outputs) {
      give(id, Place::temporary, 0);
      kernel.outputs.push_back(where(id));
    }
    list_.kernels.push_back(std::move(kernel));
  }

  // The value with its elements in order, as the kernels of a body expect them.
  OperandRef in_order(ValueId id) {
    const OperandRef& ref = where(id);
    if (ref.layout.is_contiguous()) return ref;
    const TensorType& type = graph_.type(id);
    const OperandRef copy{new_buffer(type, Place::temporary, 0), contiguous_layout(type.shape),
                          type.dtype};
    add_copy(ref, copy);
    return copy;
  }

  bool is_used_outside(ValueId id, const Region& region) const {
    const auto is_inside = [&](NodeId node) {
      return std::binary_search(region.nodes.begin(), region.nodes.end(), node);
    };
    for (NodeId user : uses_[id.index()]) {
      if (!is_inside(user)) return true;
    }
    return is_result_[id.index()];
  }

  void find_results() {
    is_result_.resize(graph_.values.size(), false);
    for (ValueId id : graph_.outputs) is_result_[id.index()] = true;
    for (const StateSlot& state : graph_.states) is_result_[state.after.index()] = true;
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

  static bool may_write_over(const Kernel& kernel, BufferId buffer, size_t output) {
    const OperandRef& result = kernel.outputs[output];
    for (size_t i = 0; i < kernel.inputs.size(); ++i) {
      const OperandRef& input = kernel.inputs[i];
      if (input.buffer != buffer) continue;
      if (input.layout != result.layout || input.dtype != result.dtype) return false;
      if (!may_overwrite(kernel, i, output)) return false;
    }
    return true;
  }

  // Who touches a buffer, so that finishing a state looks at its own kernels and at no others.
  struct BufferUses {
    std::vector<size_t> readers;  // kernels, in order
    std::optional<size_t> writer;
    std::vector<size_t> values;
    int outputs = 0;  // of the graph
    int states = 0;   // written with a value that lies here
  };

  void find_buffer_uses() {
    buffer_uses_.resize(list_.buffers.size());
    const auto uses = [&](BufferId id) -> BufferUses& { return buffer_uses_[id.index()]; };
    for (size_t k = 0; k < list_.kernels.size(); ++k) {
      for (const OperandRef& ref : list_.kernels[k].inputs) uses(ref.buffer).readers.push_back(k);
      for (const OperandRef& ref : list_.kernels[k].outputs) uses(ref.buffer).writer = k;
    }
    for (size_t v = 0; v < where_.size(); ++v) {
      if (where_[v].buffer.valid()) uses(where_[v].buffer).values.push_back(v);
    }
    for (ValueId id : graph_.outputs) ++uses(where(id).buffer).outputs;
    for (const StateSlot& state : graph_.states) {
      if (state.is_written()) ++uses(where(state.after).buffer).states;
    }
  }

  bool can_be_in_place(const StateSlot& state) const {
    const BufferId old = where(state.before).buffer, made = where(state.after).buffer;
    const BufferUses& old_uses = buffer_uses_[old.index()];
    const std::optional<size_t> producer = buffer_uses_[made.index()].writer;
    if (!is_whole_temporary(state.after) || !producer) return false;
    if (old_uses.outputs > 0 || old_uses.states > 0)
      return false;  // read when all kernels are done
    for (size_t reader : old_uses.readers) {
      if (reader > *producer) return false;  // somebody still needs the old value
    }
    const Kernel& kernel = list_.kernels[*producer];
    for (size_t i = 0; i < kernel.outputs.size(); ++i) {
      if (kernel.outputs[i].buffer == made && !may_write_over(kernel, old, i)) return false;
    }
    return true;
  }

  void finish_states_in_place() {
    find_buffer_uses();
    is_in_place_.resize(graph_.states.size(), false);
    for (size_t s = 0; s < graph_.states.size(); ++s) {
      const StateSlot& state = graph_.states[s];
      if (!state.is_written() || !can_be_in_place(state)) continue;
      rename(where(state.after).buffer, where(state.before).buffer);
      is_in_place_[s] = true;
    }
  }

  void rename(BufferId from, BufferId to) {
    BufferUses &old = buffer_uses_[from.index()], &now = buffer_uses_[to.index()];
    const auto apply = [&](std::vector<OperandRef>& refs) {
      for (OperandRef& ref : refs) {
        if (ref.buffer == from) ref.buffer = to;
      }
    };
    for (size_t k : old.readers) apply(list_.kernels[k].inputs);
    if (old.writer) apply(list_.kernels[*old.writer].outputs);
    for (size_t v : old.values) where_[v].buffer = to;
    now.readers.insert(now.readers.end(), old.readers.begin(), old.readers.end());
    now.values.insert(now.values.end(), old.values.begin(), old.values.end());
    now.writer = old.writer;
    now.outputs += old.outputs;
    now.states += old.states;
    old = {};
    list_.buffers[from.index()].bytes = 0;
  }

  void add_copy(const OperandRef& from, const OperandRef& to) {
    const int64_t bytes = storage_bytes(to.dtype, numel(to.layout.shape));
    list_.kernels.push_back({.op = &copy_op,
                             .inputs = {from},
                             .outputs = {to},
                             .phase = Phase::update,
                             .cost = {.bytes_read = bytes, .bytes_written = bytes},
                             .name = "copy"});
  }

  void finish_outputs() {
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const ValueId id = graph_.outputs[i];
      const TensorType& type = graph_.type(id);
      list_.outputs.push_back(type);
      if (is_whole_temporary(id) && buffer_uses_[where(id).buffer.index()].states == 0) {
        Buffer& buffer = list_.buffers[where(id).buffer.index()];
        buffer.place = Place::output;
        buffer.index = static_cast<int>(i);
      } else {
        const BufferId buffer = new_buffer(type, Place::output, static_cast<int>(i));
        add_copy(where(id), {buffer, contiguous_layout(type.shape), type.dtype});
      }
    }
  }

  // Sources that are states themselves are saved before the first state is overwritten.
  void finish_states_by_copy() {
    std::vector<std::pair<OperandRef, OperandRef>> copies;
    for (size_t s = 0; s < graph_.states.size(); ++s) {
      const StateSlot& state = graph_.states[s];
      if (!state.is_written() || is_in_place_[s]) continue;
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
  std::vector<bool> is_result_;          // by value: read when all nodes have run
  std::vector<BufferUses> buffer_uses_;  // by buffer, once all regions are lowered
  std::vector<bool> is_in_place_;        // by state: computed where the old value was
  KernelList list_;
};

}  // namespace

KernelList lower(const Graph& graph, const std::vector<Region>& regions) {
  return Lowering(graph, regions).run();
}

bool may_overwrite(const Kernel& kernel, size_t input, size_t output) {
  if (kernel.program || kernel.op->tiles) return true;
  if (kernel.op == &update_view_op) return input == 0;
  return kernel.op == &repeat_op &&
         static_cast<int>(input) == repeat_node(kernel.attrs).initial_of(static_cast<int>(output));
}

namespace {

int64_t workspace_bytes(const Kernel& kernel, ThreadPool& pool) {
  if (kernel.body) return kernel.body->plan.arena_bytes;
  if (!kernel.op || !kernel.op->workspace) return 0;
  std::vector<Operand> inputs, outputs;
  for (const OperandRef& ref : kernel.inputs) inputs.push_back({nullptr, &ref.layout, ref.dtype});
  for (const OperandRef& ref : kernel.outputs) outputs.push_back({nullptr, &ref.layout, ref.dtype});
  return kernel.op->workspace({*kernel.op, inputs, outputs, kernel.attrs, {}, pool});
}

}  // namespace

void select_workspaces(KernelList& list, ThreadPool& pool) {
  for (Kernel& kernel : list.kernels) {
    const int64_t bytes = workspace_bytes(kernel, pool);
    if (bytes == 0) continue;
    list.buffers.push_back({.bytes = bytes});
    kernel.workspace = BufferId(list.buffers.size() - 1);
  }
}

}  // namespace brrr
