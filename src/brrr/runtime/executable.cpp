#include "brrr/runtime/executable.h"

#include <chrono>
#include <utility>

#include "brrr/compiler/simplify.h"
#include "brrr/graph/trace.h"
#include "brrr/graph/verify.h"
#include "brrr/ops/copy.h"

namespace brrr {
namespace {

Graph run_passes(Graph graph, const PipelineOptions& options) {
  verify(graph, "trace");
  if (options.simplify) {
    graph = simplify(graph);
    verify(graph, "simplify");
  }
  return graph;
}

std::byte* first_byte(const Tensor& x) {
  return x.storage().data() + storage_bytes(x.dtype(), x.offset());
}

}  // namespace

Executable::Executable(Graph graph, const PipelineOptions& options)
    : graph_(run_passes(std::move(graph), options)),
      list_(lower(graph_, fuse(graph_, {.enabled = options.fuse}))) {
  select_workspaces(list_, thread_pool());
  plan_ = plan_memory(list_, {.share = options.plan_memory});
  if (plan_.arena_bytes > 0)
    arena_ = Storage::allocate(Device::cpu(), plan_.arena_bytes, Category::activation);
  bind();
}

// Fixes every address that is known now: those in the arena and those of states.
void Executable::bind() {
  const auto address_of = [&](BufferId id) -> std::byte* {
    const Buffer& buffer = list_.buffers[id.index()];
    if (buffer.place == Place::state)
      return first_byte(graph_.states[static_cast<size_t>(buffer.index)].tensor);
    const int64_t offset = plan_.offsets[id.index()];
    return buffer.place == Place::temporary && offset >= 0 ? arena_->data() + offset : nullptr;
  };
  for (const Kernel& kernel : list_.kernels) {
    Step step{.kernel = &kernel,
              .first_operand = operands_.size(),
              .inputs = kernel.inputs.size(),
              .outputs = kernel.outputs.size(),
              .workspace = {},
              .tiles = nullptr};
    for (const auto* refs : {&kernel.inputs, &kernel.outputs}) {
      for (const OperandRef& ref : *refs) {
        const Buffer& buffer = list_.buffers[ref.buffer.index()];
        if (buffer.place == Place::input || buffer.place == Place::output)
          patches_.push_back({operands_.size(), buffer.place, buffer.index});
        operands_.push_back({address_of(ref.buffer), &ref.layout, ref.dtype});
      }
    }
    if (kernel.workspace.valid())
      step.workspace = {address_of(kernel.workspace),
                        static_cast<size_t>(list_.buffers[kernel.workspace.index()].bytes)};
    steps_.push_back(std::move(step));
  }
  for (Step& step : steps_) {
    if (!step.kernel->program) continue;
    const std::span<const Operand> all(operands_);
    step.tiles = std::make_unique<TileKernel>(
        *step.kernel->program, all.subspan(step.first_operand, step.inputs),
        all.subspan(step.first_operand + step.inputs, step.outputs));
  }
}

void Executable::run_step(const Step& step, ThreadPool& pool) const {
  const std::span<const Operand> all(operands_);
  const auto inputs = all.subspan(step.first_operand, step.inputs),
             outputs = all.subspan(step.first_operand + step.inputs, step.outputs);
  if (step.tiles) {
    step.tiles->run(inputs, outputs, pool);
  } else {
    const Kernel& kernel = *step.kernel;
    kernel.op->cpu({*kernel.op, inputs, outputs, kernel.attrs, step.workspace, pool});
  }
}

void Executable::time_steps(KernelTimes& times, ThreadPool& pool) const {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  times.begin.clear();
  times.seconds.clear();
  times.begin.reserve(steps_.size());
  times.seconds.reserve(steps_.size());
  const Clock::time_point start = Clock::now();
  for (const Step& step : steps_) {
    const Clock::time_point begin = Clock::now();
    run_step(step, pool);
    times.begin.push_back(seconds(begin - start));
    times.seconds.push_back(seconds(Clock::now() - begin));
  }
}

Tensors Executable::run(std::span<const Tensor> inputs) { return run_with(inputs, nullptr); }
Tensors Executable::run_timed(std::span<const Tensor> inputs, KernelTimes& times) {
  return run_with(inputs, &times);
}

Tensors Executable::run_with(std::span<const Tensor> inputs, KernelTimes* times) {
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
  ThreadPool& pool = thread_pool();
  if (times) {
    time_steps(*times, pool);
  } else {
    for (const Step& step : steps_) run_step(step, pool);
  }
  for (const StateSlot& state : graph_.states) {
    if (state.is_written()) state.tensor.storage().mark_written();
  }
  return results;
}

Cost Executable::cost() const {
  Cost total;
  for (const Kernel& kernel : list_.kernels) total += kernel.cost;
  return total;
}

}  // namespace brrr
