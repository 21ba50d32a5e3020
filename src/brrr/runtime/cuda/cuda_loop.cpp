#include "brrr/runtime/cuda/cuda_loop.h"

namespace brrr::runtime {
namespace {

// Of one iteration: the part of an operand that is dealt out among them.
int64_t slice_bytes(const compiler::OperandRef& sliced, const graph::RepeatNode& parts) {
  return storage_bytes(sliced.dtype, numel(sliced.layout.shape)) / std::max<int64_t>(parts.most, 1);
}

size_t bytes_of(const Operand& operand) {
  return static_cast<size_t>(storage_bytes(operand.dtype, operand.count()));
}

// The number that a buffer holds in every run, where a program writes one there.
std::optional<int64_t> constant_in(const compiler::KernelList& list, compiler::BufferId buffer) {
  for (const compiler::Kernel& kernel : list.kernels) {
    if (kernel.outputs.empty() || kernel.outputs[0].buffer != buffer) continue;
    if (kernel.role() == OpRole::full) return static_cast<int64_t>(kernel.attrs.number("value"));
    if (kernel.role() == OpRole::number && kernel.outputs[0].dtype == DType::i64)
      return kernel.attrs.integer("value");
  }
  return {};
}

}  // namespace

int64_t loop_bytes(const compiler::Kernel& kernel) {
  const graph::RepeatNode parts = graph::repeat_node(kernel.attrs);
  int64_t bytes = side_block(static_cast<int64_t>(sizeof(int64_t)));
  for (int i = 1; i < parts.first_captured(); ++i)
    bytes += side_block(slice_bytes(kernel.inputs[static_cast<size_t>(i)], parts));
  return bytes + side_bytes(kernel.body->list).value();
}

CudaProgram::Loop::Loop(const compiler::KernelList& list, const compiler::Kernel& kernel,
                        std::byte* arena, int device)
    : parts(graph::repeat_node(kernel.attrs)),
      body(*kernel.body, arena, device),
      constant(constant_in(list, kernel.inputs[0].buffer)) {
  slots.push_back(device_bytes(device, sizeof(int64_t)));
  for (int i = 1; i < parts.first_captured(); ++i)
    slots.push_back(
        device_bytes(device, slice_bytes(kernel.inputs[static_cast<size_t>(i)], parts)));
  for (size_t i = 0; i < slots.size(); ++i)
    body.set_address(compiler::Place::input, static_cast<int>(i), slots[i]->data());
}

int64_t CudaProgram::count_of(const Step& step) {
  Loop& loop = *step.loop;
  if (loop.constant) {
    loop.count = *loop.constant;
  } else {
    cuda::copy_to_host(&loop.count, first_byte(inputs_of(step)[0]), sizeof(loop.count), stream_);
    cuda::wait(stream_);
  }
  graph::check_repeat_count(loop.count, loop.parts);
  return loop.count;
}

// Shows the body where its states are and what is the same in all iterations.
void CudaProgram::bind_loop(Step& step) {
  Loop& loop = *step.loop;
  const std::span<const Operand> inputs = inputs_of(step), outputs = outputs_of(step);
  for (int s = 0; s < loop.parts.states(); ++s)
    loop.body.set_address(compiler::Place::state, s, first_byte(outputs[static_cast<size_t>(s)]));
  for (int i = loop.parts.first_captured(); i < loop.parts.first_initial(); ++i)
    loop.body.set_address(compiler::Place::input, i, first_byte(inputs[static_cast<size_t>(i)]));
  loop.body.upload_tables();
}

// First values of the states, and of the counter.
void CudaProgram::start_loop(Step& step) {
  const Loop& loop = *step.loop;
  const std::span<const Operand> inputs = inputs_of(step), outputs = outputs_of(step);
  cuda::fill_zero(loop.counter(), sizeof(int64_t), stream_);
  for (int s = 0; s < loop.parts.states(); ++s) {
    const Operand& state = outputs[static_cast<size_t>(s)];
    const int initial = loop.parts.initial_of(s);
    const std::byte* from =
        initial < 0 ? nullptr : first_byte(inputs[static_cast<size_t>(initial)]);
    std::byte* const to = first_byte(state);
    if (!from) cuda::fill_zero(to, bytes_of(state), stream_);
    if (from && from != to) cuda::copy_on_device(to, from, bytes_of(state), stream_);
  }
}

void CudaProgram::take_slices(const Step& step) const {
  const Loop& loop = *step.loop;
  std::vector<cuda::Slice> slices;
  for (int i = 1; i < loop.parts.first_captured(); ++i) {
    const Operand& sliced = inputs_of(step)[static_cast<size_t>(i)];
    const auto bytes = static_cast<int64_t>(bytes_of(sliced)) / loop.parts.most;
    if (bytes > 0)
      slices.push_back({first_byte(sliced), loop.slots[static_cast<size_t>(i)]->data(), bytes});
  }
  cuda::take_slices(slices, loop.counter(), stream_);
}

// A body inside a body goes kernel by kernel.
bool CudaProgram::may_record(const Step& step) {
  const CudaProgram& body = step.loop->body;
  return body.runs_ > 0 && std::none_of(body.steps_.begin(), body.steps_.end(),
                                        [](const Step& inner) { return inner.loop != nullptr; });
}

void CudaProgram::run_loop(Step& step) {
  Loop& loop = *step.loop;
  const int64_t count = count_of(step);
  bind_loop(step);
  start_loop(step);
  for (int64_t n = 0; n < count; ++n) {
    take_slices(step);
    loop.body.run(/*replay=*/false);
    cuda::advance(loop.counter(), stream_);
    launches_ += loop.body.launches_of_last_run();
  }
}

void CudaProgram::replay_loop(Section& section) {
  Step& step = *section.loop;
  CudaProgram& body = step.loop->body;
  const int64_t count = count_of(step);
  bind_loop(step);
  const auto iterate = [&] {
    take_slices(step);
    for (Step& inner : body.steps_) body.launch_step(inner);
    cuda::advance(step.loop->counter(), stream_);
  };
  const auto begin = [&] {
    launch_steps(section);
    start_loop(step);
  };
  if (count == 0) return begin();
  launch_recorded(section.graph, [&] {
    begin();
    iterate();
  });
  for (int64_t n = 1; n < count; ++n) launch_recorded(section.next, iterate);
}

}  // namespace brrr::runtime
