#include "brrr/compiler/lower/lower_results.h"

#include <optional>

#include "brrr/ops/op_list.h"

namespace brrr::compiler {
namespace {

class Results {
 public:
  Results(const Graph& graph, std::vector<OperandRef>& where, KernelList& list)
      : graph_(graph), where_(where), list_(list) {}

  void finish() {
    find_buffer_uses();
    finish_states_in_place();
    finish_outputs();
    finish_states_by_copy();
  }

 private:
  const OperandRef& where(ValueId id) const { return where_[id.index()]; }
  bool is_whole_temporary(ValueId id) const {
    const OperandRef& ref = where(id);
    return list_.buffers[ref.buffer.index()].place == Place::temporary &&
           ref.layout == contiguous_layout(graph_.type(id).shape) &&
           list_.buffers[ref.buffer.index()].bytes ==
               storage_bytes(graph_.type(id).dtype, numel(graph_.type(id).shape));
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
        const BufferId buffer = add_buffer(list_, type, Place::output, static_cast<int>(i));
        add_copy(list_, where(id), {buffer, contiguous_layout(type.shape), type.dtype});
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
        const OperandRef saved{add_buffer(list_, type, Place::temporary, 0),
                               contiguous_layout(type.shape), type.dtype};
        add_copy(list_, from, saved);
        from = saved;
      }
      copies.emplace_back(from, where(state.before));
    }
    for (const auto& [from, to] : copies) add_copy(list_, from, to);
  }

  const Graph& graph_;
  std::vector<OperandRef>& where_;  // by value
  KernelList& list_;
  std::vector<BufferUses> buffer_uses_;  // by buffer
  std::vector<bool> is_in_place_;        // by state: computed where the old value was
};

}  // namespace

BufferId add_buffer(KernelList& list, const TensorType& type, Place place, int index) {
  list.buffers.push_back({storage_bytes(type.dtype, numel(type.shape)), place, index});
  return BufferId(list.buffers.size() - 1);
}

void add_copy(KernelList& list, const OperandRef& from, const OperandRef& to) {
  const int64_t bytes = storage_bytes(to.dtype, numel(to.layout.shape));
  list.kernels.push_back({.op = &copy_op,
                          .inputs = {from},
                          .outputs = {to},
                          .phase = Phase::update,
                          .cost = {.bytes_read = bytes, .bytes_written = bytes},
                          .name = "copy",
                          .parts = {{&copy_op, numel(to.layout.shape)}}});
}

void finish_results(const Graph& graph, std::vector<OperandRef>& where, KernelList& list) {
  Results(graph, where, list).finish();
}

}  // namespace brrr::compiler
