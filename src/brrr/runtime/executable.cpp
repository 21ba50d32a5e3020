#include "brrr/runtime/executable.h"

#include <algorithm>
#include <utility>

#include "brrr/graph/count.h"
#include "brrr/ops/create/copy.h"
#include "brrr/runtime/cpu/cpu_runner.h"

namespace brrr::runtime {
namespace {

// The device asked for, which must be the one that the states live on.
Device device_of(const graph::Graph& graph, const compiler::PipelineOptions& options) {
  std::optional<Device> device = options.device;
  for (const graph::StateSlot& state : graph.states) {
    check(
        state.tensor.defined(), "compile: state \"", state.name,
        "\" has no elements; a graph that was read from text can be printed and interpreted only");
    if (!device) device = state.tensor.device();
    check(state.tensor.device() == *device, "compile: the program runs on ", *device,
          ", and its state \"", state.name, "\" lives on ", state.tensor.device(),
          "; move it with to(x, device)");
  }
  return device.value_or(Device::cpu());
}

Bytes bytes_of(const TensorType& type) {
  return Bytes(storage_bytes(type.dtype, numel(type.shape)));
}

}  // namespace

Bytes ProgramMemory::total() const { return states + inputs + outputs + arena; }

Executable::Executable(graph::Graph graph, const compiler::PipelineOptions& options)
    : device_(device_of(graph, options)) {
  compiler::PipelineOptions here = options;
  here.device = device_;
  if (!here.target) here.target = compiler::target_of(device_);
  const compiler::Backend& backend = *here.target->backend;
  program_ = compiler::run_pipeline(std::move(graph), here, thread_pool());
  if (device_.has_data() && backend.require_memory)
    backend.require_memory(device_, Bytes(plan().arena_bytes));
  if (plan().arena_bytes > 0)
    arena_ = Storage::allocate(device_, plan().arena_bytes, Category::activation);
  for (const graph::StateSlot& state : program_.graph.states) {
    Storage& storage = state.tensor.storage();
    states_.push_back({&storage, state.is_written(), !storage.is_unique()});
    if (state.is_written()) written_.push_back(&storage);
  }
  std::sort(written_.begin(), written_.end());
  copied_.assign(states_.size(), -1);
  if (device_.has_data()) {
    runner_ = backend.bind(program_, arena_ ? arena_->data() : nullptr, device_);
  } else {
    runner_ = std::make_unique<CountingRunner>(program_);
  }
}

// Casts the copies of states that somebody else wrote since this program ran last: a checkpoint that was
// loaded, an eager update, another program.
void Executable::refresh_copies() {
  const std::vector<graph::StateSlot>& states = program_.graph.states;
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].copy_of < 0) continue;
    const Tensor& master = states[static_cast<size_t>(states[i].copy_of)].tensor;
    if (copied_[i] == master.storage().version()) continue;
    NoGrad nothing_is_recorded;
    states[i].tensor.copy_from(master.detach());
  }
}

void Executable::note_copies() {
  const std::vector<graph::StateSlot>& states = program_.graph.states;
  for (size_t i = 0; i < states.size(); ++i) {
    const int of = states[i].copy_of;
    if (of >= 0) copied_[i] = states[static_cast<size_t>(of)].tensor.storage().version();
  }
}

void Executable::check_input(size_t i, const Tensor& x) const {
  const graph::GraphInput& input = program_.graph.inputs[i];
  const TensorType& type = program_.graph.type(input.value);
  check(x.shape() == type.shape && x.dtype() == type.dtype,
        "the compiled function was traced with \"", input.name, "\" as ", type,
        ", and is called with ", describe(x));
  const bool is_copied = runner_->copies_host_inputs() && x.device() == Device::cpu();
  check(x.device() == device_ || is_copied, "the compiled function runs on ", device_, ", and \"",
        input.name, "\" lives on ", x.device(), "; move it with to(x, device)");
}

void Executable::fail_dropped(size_t state) const {
  fail("the compiled function holds state \"", program_.graph.states[state].name, "\" (",
       describe(program_.graph.states[state].tensor),
       "), and nobody else does any more: the tensor was replaced or dropped since it was traced; ",
       "write new values into it with copy_from, or compile again");
}

// A state that only the program can see is one that its owner has replaced by another tensor.
void Executable::check_states() const {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].is_shared && states_[i].storage->is_unique()) [[unlikely]]
      fail_dropped(i);
  }
}

bool Executable::is_written_state(const Storage& storage) const {
  return std::binary_search(written_.begin(), written_.end(), &storage);
}

Tensor Executable::own_input(const Tensor& x) const {
  NoGrad nothing_is_recorded;
  return clone(x.detach());
}

Tensors Executable::run(std::span<const Tensor> inputs) { return run_with(inputs, nullptr); }
Tensors Executable::run_timed(std::span<const Tensor> inputs, KernelTimes& times) {
  return run_with(inputs, &times);
}

// The inputs as kernels may read them, with everything checked.
Tensors Executable::usable_inputs(std::span<const Tensor> inputs) {
  const graph::Graph& graph = program_.graph;
  check(inputs.size() == graph.inputs.size(), "the compiled function takes ", graph.inputs.size(),
        " tensors, not ", inputs.size());
  check_states();
  Tensors given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& x = inputs[i];
    check_input(i, x);
    // Kernels read inputs in order, and a state that is also an input must not change under them.
    const bool is_usable =
        !device_.has_data() || (x.is_contiguous() && !is_written_state(x.storage()));
    given.push_back(is_usable ? x : own_input(x));
  }
  if (device_.has_data()) refresh_copies();
  return given;
}

// What others may see of a run: its cost, and that states were written.
void Executable::note_run() {
  if (is_counting()) runner_->count_last_run();
  for (const HeldState& state : states_) {
    if (state.is_written) state.storage->mark_written();
  }
  if (device_.has_data()) note_copies();
}

Tensors Executable::run_with(std::span<const Tensor> inputs, KernelTimes* times) {
  const Tensors given = usable_inputs(inputs);
  Tensors results = runner_->run({given.begin(), given.end()}, times);
  note_run();
  return results;
}

PendingResults Executable::enqueue(std::span<const Tensor> inputs) {
  const Tensors given = usable_inputs(inputs);
  PendingResults results = runner_->enqueue({given.begin(), given.end()});
  note_run();
  return results;
}

void Executable::wait() const { runner_->wait(); }

Cost Executable::cost() const {
  Cost total;
  for (const compiler::Kernel& kernel : kernels().kernels) total += kernel.cost;
  return total;
}

ProgramMemory Executable::memory() const {
  ProgramMemory memory{.arena = Bytes(plan().arena_bytes)};
  const graph::Graph& graph = program_.graph;
  for (const graph::StateSlot& state : graph.states)
    memory.states += bytes_of(graph.type(state.before));
  for (const graph::GraphInput& input : graph.inputs)
    memory.inputs += bytes_of(graph.type(input.value));
  for (const TensorType& type : kernels().outputs) memory.outputs += bytes_of(type);
  return memory;
}

}  // namespace brrr::runtime
