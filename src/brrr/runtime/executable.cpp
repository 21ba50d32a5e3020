#include "brrr/runtime/executable.h"

#include <algorithm>
#include <utility>

#include "brrr/compiler/simplify.h"
#include "brrr/graph/trace.h"
#include "brrr/graph/verify.h"
#include "brrr/ops/copy.h"

namespace brrr {
namespace {

PlannedGraph plan_of(const Graph& graph, const PipelineOptions& options) {
  PlannedGraph planned{
      .kernels = lower(graph, fuse(graph, {.enabled = options.fuse}), {.group = options.fuse}),
      .memory = {}};
  select_workspaces(planned.kernels, thread_pool());
  planned.memory = plan_memory(planned.kernels, {.share = options.plan_memory});
  return planned;
}

Graph run_passes(Graph graph, const PipelineOptions& options) {
  verify(graph, "trace");
  graph = apply_precision(graph, options.precision);
  verify(graph, "precision");
  if (options.simplify) {
    graph = simplify(graph);
    verify(graph, "simplify");
  }
  graph = rematerialize(graph, options.remat,
                        [&](const Graph& candidate) { return plan_of(candidate, options); });
  verify(graph, "rematerialize");
  return graph;
}

std::byte* first_byte(const Tensor& x) {
  return x.storage().data() + storage_bytes(x.dtype(), x.offset());
}

}  // namespace

Executable::Executable(Graph graph, const PipelineOptions& options)
    : graph_(run_passes(std::move(graph), options)) {
  PlannedGraph planned = plan_of(graph_, options);
  list_ = std::move(planned.kernels);
  plan_ = std::move(planned.memory);
  if (plan_.arena_bytes > 0)
    arena_ = Storage::allocate(Device::cpu(), plan_.arena_bytes, Category::activation);
  copied_.assign(graph_.states.size(), -1);
  bind();
}

// Casts the copies of states that somebody else wrote since this program ran last: a checkpoint that was
// loaded, an eager update, another program.
void Executable::refresh_copies() {
  for (size_t i = 0; i < graph_.states.size(); ++i) {
    const StateSlot& copy = graph_.states[i];
    if (copy.copy_of < 0) continue;
    const Tensor& master = graph_.states[static_cast<size_t>(copy.copy_of)].tensor;
    if (copied_[i] == master.storage().version()) continue;
    NoGrad nothing_is_recorded;
    copy.tensor.copy_from(master.detach());
  }
}

void Executable::note_copies() {
  for (size_t i = 0; i < graph_.states.size(); ++i) {
    const int of = graph_.states[i].copy_of;
    if (of >= 0) copied_[i] = graph_.states[static_cast<size_t>(of)].tensor.storage().version();
  }
}

std::byte* Executable::address_of(BufferId id) const {
  if (!id.valid()) return nullptr;
  const Buffer& buffer = list_.buffers[id.index()];
  if (buffer.place == Place::state)
    return first_byte(graph_.states[static_cast<size_t>(buffer.index)].tensor);
  const int64_t offset = plan_.offsets[id.index()];
  return buffer.place == Place::temporary && offset >= 0 ? arena_->data() + offset : nullptr;
}

void Executable::add_operand(const Layout& layout, DType dtype, BufferId id) {
  if (id.valid()) {
    const Buffer& buffer = list_.buffers[id.index()];
    if (buffer.place == Place::input || buffer.place == Place::output)
      patches_.push_back({operands_.size(), buffer.place, buffer.index});
  }
  operands_.push_back({address_of(id), &layout, dtype});
}

void Executable::add_core_operands(const std::vector<CoreOperand>& operands,
                                   const std::vector<OperandRef>& refs) {
  for (const CoreOperand& operand : operands) {
    const BufferId buffer =
        operand.index < 0 ? BufferId() : refs[static_cast<size_t>(operand.index)].buffer;
    add_operand(operand.layout, operand.dtype, buffer);
  }
}

// Fixes every address that is known now: those in the arena and those of states. The operands of a step
// lie behind each other: those of its op or program, then those of each attachment.
void Executable::bind() {
  cores_.reserve(list_.kernels.size());
  for (const Kernel& kernel : list_.kernels) {
    const bool is_group = !kernel.op && !kernel.program;  // it has nothing but attachments
    if (is_group) {
      cores_.emplace_back();
    } else {
      cores_.emplace_back(core_operands(kernel.core_inputs, kernel.inputs),
                          core_operands(kernel.core_outputs, kernel.outputs));
    }
    const auto& [inputs, outputs] = cores_.back();
    Step step{.kernel = &kernel,
              .first_operand = operands_.size(),
              .inputs = inputs.size(),
              .outputs = outputs.size(),
              .workspace = {},
              .tiles = nullptr,
              .streams = {},
              .first_pieces = {0}};
    add_core_operands(inputs, kernel.inputs);
    add_core_operands(outputs, kernel.outputs);
    for (const Attachment& attachment : kernel.attachments) {
      for (int i : attachment.inputs) {
        const OperandRef& ref = kernel.inputs[static_cast<size_t>(i)];
        add_operand(ref.layout, ref.dtype, ref.buffer);
      }
      for (int i : attachment.outputs) {
        const OperandRef& ref = kernel.outputs[static_cast<size_t>(i)];
        add_operand(ref.layout, ref.dtype, ref.buffer);
      }
    }
    if (kernel.workspace.valid())
      step.workspace = {address_of(kernel.workspace),
                        static_cast<size_t>(list_.buffers[kernel.workspace.index()].bytes)};
    steps_.push_back(std::move(step));
  }
  for (size_t s = 0; s < steps_.size(); ++s)
    bind_streams(steps_[s], cores_[s].first, cores_[s].second);
}

// Now that operands have their places: the programs that run over them.
void Executable::bind_streams(Step& step, const std::vector<CoreOperand>& inputs,
                              const std::vector<CoreOperand>& outputs) {
  const std::span<const Operand> all(operands_);
  size_t next = step.first_operand + step.inputs + step.outputs;
  if (step.kernel->program)
    step.tiles = std::make_unique<TileKernel>(
        *step.kernel->program, all.subspan(step.first_operand, step.inputs),
        all.subspan(step.first_operand + step.inputs, step.outputs));
  for (const Attachment& attachment : step.kernel->attachments) {
    const auto from = all.subspan(next, attachment.inputs.size()),
               to = all.subspan(next + from.size(), attachment.outputs.size());
    step.streams.push_back(
        std::make_unique<TileStream>(*attachment.program, from, to, attachment.landing));
    next += from.size() + to.size();
    step.first_pieces.push_back(step.first_pieces.back() + step.streams.back()->pieces());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].attachment >= 0)
      operands_[step.first_operand + i].source =
          step.streams[static_cast<size_t>(inputs[i].attachment)].get();
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].attachment >= 0)
      operands_[step.first_operand + step.inputs + i].sink =
          step.streams[static_cast<size_t>(outputs[i].attachment)].get();
  }
}

// The pieces of all programs, one after another, shared among the threads.
void Executable::run_side_by_side(const Step& step, ThreadPool& pool) {
  const std::vector<int64_t>& first = step.first_pieces;
  pool.for_each_piece(first.back(), [&](int64_t piece) {
    const auto behind = std::upper_bound(first.begin(), first.end(), piece);
    const auto p = static_cast<size_t>(behind - first.begin()) - 1;
    step.streams[p]->run_piece(piece - first[p]);
  });
}

void Executable::run_step(const Step& step, ThreadPool& pool) const {
  const std::span<const Operand> all(operands_);
  const auto inputs = all.subspan(step.first_operand, step.inputs),
             outputs = all.subspan(step.first_operand + step.inputs, step.outputs);
  if (step.tiles) {
    step.tiles->run(inputs, outputs, pool);
  } else if (!step.kernel->op) {
    run_side_by_side(step, pool);
  } else {
    const Kernel& kernel = *step.kernel;
    kernel.op->cpu({*kernel.op, inputs, outputs, kernel.attrs, step.workspace, pool});
  }
}

Tensors Executable::run(std::span<const Tensor> inputs) {
  check(inputs.size() == graph_.inputs.size(), "the compiled function takes ", graph_.inputs.size(),
        " tensors, not ", inputs.size());
  Tensors given, results;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = graph_.type(graph_.inputs[i].value);
    check(inputs[i].shape() == type.shape && inputs[i].dtype() == type.dtype,
          "the compiled function was traced with \"", graph_.inputs[i].name, "\" as ", type,
          ", and is called with ", describe(inputs[i]));
    NoGrad nothing_is_recorded;
    given.push_back(contiguous(inputs[i].detach()));
  }
  for (const TensorType& type : list_.outputs) results.push_back(empty(type.shape, type.dtype));
  for (const Patch& patch : patches_) {
    const Tensor& x = patch.place == Place::input ? given[patch.index] : results[patch.index];
    operands_[patch.operand].base = first_byte(x);
  }
  refresh_copies();
  ThreadPool& pool = thread_pool();
  for (const Step& step : steps_) run_step(step, pool);
  for (const StateSlot& state : graph_.states) {
    if (state.is_written()) state.tensor.storage().mark_written();
  }
  note_copies();
  return results;
}

Cost Executable::cost() const {
  Cost total;
  for (const Kernel& kernel : list_.kernels) total += kernel.cost;
  return total;
}

}  // namespace brrr
