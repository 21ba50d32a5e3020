#include "brrr/runtime/cuda_program.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "brrr/device/cuda/generated.h"
#include "brrr/graph/count.h"
#include "brrr/graph/cuda_launch.h"
#include "brrr/ops/op_list.h"

namespace brrr {
namespace {

std::byte* first_byte(const Operand& operand) {
  return operand.base + storage_bytes(operand.dtype, operand.layout->offset);
}

size_t bytes_of(const Operand& operand) {
  return static_cast<size_t>(storage_bytes(operand.dtype, operand.count()));
}

int64_t side_block(int64_t bytes) { return std::max<int64_t>(bytes, 16); }

Ref<Storage> device_bytes(int device, int64_t bytes) {
  return Storage::allocate(Device::cuda(device), side_block(bytes), Category::workspace);
}

// Of one iteration of a loop: the part of an operand that is dealt out among them.
int64_t slice_bytes(const OperandRef& sliced, const RepeatNode& parts) {
  return storage_bytes(sliced.dtype, numel(sliced.layout.shape)) / std::max<int64_t>(parts.most, 1);
}

int64_t table_bytes(const GeneratedLaunch& launch) {
  return static_cast<int64_t>(launch.pointers.size() * sizeof(void*));
}

int64_t loop_bytes(const Kernel& kernel) {
  const RepeatNode parts = repeat_node(kernel.attrs);
  const auto number = static_cast<int64_t>(sizeof(int64_t));
  int64_t bytes = side_block(std::max<int64_t>(parts.most, 1) * number) + side_block(number);
  for (int i = 1; i < parts.first_captured(); ++i)
    bytes += side_block(slice_bytes(kernel.inputs[static_cast<size_t>(i)], parts));
  return bytes + side_bytes(kernel.body->list).value();
}

// The number that a buffer holds in every run, where a program writes one there.
std::optional<int64_t> constant_in(const KernelList& list, BufferId buffer) {
  for (const Kernel& kernel : list.kernels) {
    if (kernel.outputs.empty() || kernel.outputs[0].buffer != buffer) continue;
    if (kernel.op == &full_op) return static_cast<int64_t>(kernel.attrs.number("value"));
    if (kernel.op == &number_op && kernel.outputs[0].dtype == DType::i64)
      return kernel.attrs.integer("value");
  }
  return {};
}

// Compiles what is not in a cache yet on all threads. A failure is found again, and told, by the one who
// needs the kernel.
void compile_at_once(const KernelList& list, const std::string& architecture) {
  std::vector<const cuda::SourceText*> sources;
  std::set<std::string_view> seen;
  for (const Kernel& kernel : list.kernels) {
    if (!kernel.generated || kernel.generated->launches.empty()) continue;
    const cuda::SourceText& source = kernel.generated->source;
    if (seen.insert(source.text).second) sources.push_back(&source);
  }
  thread_pool().for_each_piece(static_cast<int64_t>(sources.size()), [&](int64_t i) {
    try {
      cuda::compile_source(*sources[static_cast<size_t>(i)], architecture);
    } catch (const Error&) {
      return;
    }
  });
}

// Seconds between two events with nothing between them, the median of some; waits.
double empty_interval(cuda::Stream stream) {
  constexpr size_t kIntervals = 9;
  std::vector<cuda::Event> events(kIntervals + 1);
  for (cuda::Event& event : events) event.record(stream);
  events.back().wait();
  std::vector<double> seconds;
  for (size_t i = 0; i < kIntervals; ++i)
    seconds.push_back(cuda::seconds_between(events[i], events[i + 1]));
  std::sort(seconds.begin(), seconds.end());
  return seconds[kIntervals / 2];
}

const OpDef kFused{.name = "fused", .formula = "", .kind = OpKind::elementwise};

}  // namespace

Bytes side_bytes(const KernelList& list) {
  int64_t bytes = 0;
  for (const Kernel& kernel : list.kernels) {
    if (kernel.body) bytes += loop_bytes(kernel);
    if (!kernel.generated) continue;
    for (const GeneratedLaunch& launch : kernel.generated->launches) {
      if (launch.is_table) bytes += side_block(table_bytes(launch));
    }
  }
  return Bytes(bytes);
}

// A body, with an arena inside that of the program around it. What changes from one iteration to the next
// is copied into slots, so that the body is captured once.
struct CudaProgram::Loop {
  Loop(const Kernel& kernel, std::byte* arena, int device)
      : parts(repeat_node(kernel.attrs)), body(*kernel.body, arena, device) {
    std::vector<int64_t> numbers(static_cast<size_t>(std::max<int64_t>(parts.most, 1)));
    std::iota(numbers.begin(), numbers.end(), 0);
    const auto bytes = static_cast<int64_t>(numbers.size() * sizeof(int64_t));
    indices = device_bytes(device, bytes);
    cuda::copy_to_device(indices->data(), numbers.data(), static_cast<size_t>(bytes),
                         cuda::stream(device));
    cuda::wait(cuda::stream(device));  // `numbers` goes
  }
  RepeatNode parts;
  CudaProgram body;
  Ref<Storage> indices;             // 0, 1, 2, ...
  std::vector<Ref<Storage>> slots;  // of the index and of every sliced operand
  std::optional<int64_t> constant;  // the count, where the program has it as a number
  cuda::Graph start;                // the first values of its states
  int64_t count = 0;                // iterations of the last run
};

CudaProgram::CudaProgram(const KernelProgram& program, std::byte* arena, int device)
    : program_(&program), device_(device), stream_(cuda::stream(device)) {
  compile_at_once(program.list, cuda::architecture_of(device));
  size_t operands = 0;
  for (const Kernel& kernel : program.list.kernels)
    operands += kernel.inputs.size() + kernel.outputs.size();
  operands_.reserve(operands);
  steps_.reserve(program.list.kernels.size());
  for (const Kernel& kernel : program.list.kernels) add_step(kernel, arena);
  add_sections();
}

CudaProgram::~CudaProgram() = default;

std::byte* CudaProgram::arena_address(BufferId id, std::byte* arena) const {
  if (!id.valid() || program_->list.buffers[id.index()].place != Place::temporary) return nullptr;
  const int64_t offset = program_->plan.offsets[id.index()];
  return offset >= 0 ? arena + offset : nullptr;
}

void CudaProgram::add_step(const Kernel& kernel, std::byte* arena) {
  Step step{.kernel = &kernel, .first_operand = operands_.size()};
  for (const std::vector<OperandRef>* refs : {&kernel.inputs, &kernel.outputs}) {
    for (const OperandRef& ref : *refs) {
      operands_.push_back({arena_address(ref.buffer, arena), &ref.layout, ref.dtype});
      buffers_.push_back(ref.buffer);
    }
  }
  if (kernel.workspace.valid())
    step.workspace = {arena_address(kernel.workspace, arena),
                      static_cast<size_t>(program_->list.buffers[kernel.workspace.index()].bytes)};
  if (kernel.body) {
    step.loop = std::make_unique<Loop>(kernel, step.workspace.data(), device_);
    step.loop->constant = constant_in(program_->list, kernel.inputs[0].buffer);
    step.loop->slots.push_back(device_bytes(device_, sizeof(int64_t)));
    for (int i = 1; i < step.loop->parts.first_captured(); ++i)
      step.loop->slots.push_back(device_bytes(
          device_, slice_bytes(kernel.inputs[static_cast<size_t>(i)], step.loop->parts)));
    for (size_t i = 0; i < step.loop->slots.size(); ++i)
      step.loop->body.set_address(Place::input, static_cast<int>(i), step.loop->slots[i]->data());
  } else if (kernel.generated) {
    for (const GeneratedLaunch& launch : kernel.generated->launches) {
      step.code.push_back(&cuda::generated_kernel(kernel.generated->source, launch.entry, device_));
      step.tables.push_back(launch.is_table ? device_bytes(device_, table_bytes(launch))
                                            : Ref<Storage>());
    }
  } else {
    check(kernel.op && kernel.op->cuda, kernel.name,
          ": has no CUDA kernel and no composition; run ", "the program on the cpu");
  }
  steps_.push_back(std::move(step));
}

void CudaProgram::add_sections() {
  for (size_t s = 0; s < steps_.size(); ++s) {
    const bool is_loop = steps_[s].loop != nullptr;
    if (is_loop || sections_.empty() || sections_.back().is_loop)
      sections_.push_back({.begin = s, .end = s, .is_loop = is_loop, .graph = {}});
    sections_.back().end = s + 1;
  }
}

std::span<const Operand> CudaProgram::inputs_of(const Step& step) const {
  return std::span(operands_).subspan(step.first_operand, step.kernel->inputs.size());
}
std::span<const Operand> CudaProgram::outputs_of(const Step& step) const {
  return std::span(operands_).subspan(step.first_operand + step.kernel->inputs.size(),
                                      step.kernel->outputs.size());
}

void CudaProgram::set_address(Place place, int index, std::byte* address) {
  constexpr uintptr_t kAligned = 16;  // what packs of generated kernels rely on
  check(reinterpret_cast<uintptr_t>(address) % kAligned == 0,
        "compile: a tensor of a GPU program begins at an address that is no multiple of 16 bytes; ",
        "copy it first with clone(x)");
  for (size_t i = 0; i < operands_.size(); ++i) {
    const Buffer& buffer = program_->list.buffers[buffers_[i].index()];
    if (buffer.place != place || buffer.index != index || operands_[i].base == address) continue;
    operands_[i].base = address;
    addresses_changed_ = true;
  }
}

// ---- launches ------------------------------------------------------------------------------------
void* CudaProgram::address_of(const Step& step, const KernelPointer& pointer) const {
  const auto index = static_cast<size_t>(pointer.index);
  switch (pointer.from) {
    case KernelPointer::From::input: return first_byte(inputs_of(step)[index]);
    case KernelPointer::From::output: return first_byte(outputs_of(step)[index]);
    case KernelPointer::From::workspace: return step.workspace.data() + index;
  }
  return nullptr;
}

void CudaProgram::upload_tables() {
  if (!addresses_changed_) return;
  for (Step& step : steps_) {
    for (size_t l = 0; l < step.tables.size(); ++l) {
      if (!step.tables[l]) continue;
      std::vector<void*> pointers;
      for (const KernelPointer& pointer : step.kernel->generated->launches[l].pointers)
        pointers.push_back(address_of(step, pointer));
      cuda::copy_to_device(step.tables[l]->data(), static_cast<const void*>(pointers.data()),
                           pointers.size() * sizeof(void*), stream_);
    }
  }
  addresses_changed_ = false;
}

void CudaProgram::wait_for(const Kernel& kernel) const {
  try {
    cuda::wait(stream_);
  } catch (const Error& error) {
    std::string operands;
    for (const std::vector<OperandRef>* refs : {&kernel.inputs, &kernel.outputs}) {
      if (refs == &kernel.outputs) operands += " ->";
      for (const OperandRef& ref : *refs) operands += join_text(" ", ref.dtype, ref.layout.shape);
    }
    fail(error.what(), "; it ran ", kernel.name, " of", operands);
  }
}

void CudaProgram::launch_generated(Step& step) {
  const GeneratedKernel& kernel = *step.kernel->generated;
  for (size_t l = 0; l < kernel.launches.size(); ++l) {
    const GeneratedLaunch& launch = kernel.launches[l];
    std::vector<void*> pointers, more, arguments;
    if (launch.is_table) {
      pointers.push_back(step.tables[l]->data());
    } else {
      for (const KernelPointer& pointer : launch.pointers)
        pointers.push_back(address_of(step, pointer));
    }
    if (pointers.empty()) pointers.push_back(nullptr);  // an empty struct is a parameter too
    for (const KernelPointer& pointer : launch.more) more.push_back(address_of(step, pointer));
    arguments.push_back(static_cast<void*>(pointers.data()));
    if (!more.empty()) arguments.push_back(static_cast<void*>(more.data()));
    step.code[l]->launch({.grid = {static_cast<unsigned>(launch.blocks)},
                          .block = {static_cast<unsigned>(launch.threads)}},
                         stream_, arguments);
    ++launches_;
    if (waits_for_cuda_kernels()) wait_for(*step.kernel);
  }
}

void CudaProgram::launch_step(Step& step) {
  const Kernel& kernel = *step.kernel;
  if (kernel.generated) return launch_generated(step);
  launch_cuda(
      {*kernel.op, inputs_of(step), outputs_of(step), kernel.attrs, step.workspace, stream_});
  ++launches_;
}

int64_t CudaProgram::count_of(const Step& step) {
  if (const std::optional<int64_t>& constant = step.loop->constant) return *constant;
  int64_t count = 0;
  cuda::copy_to_host(&count, first_byte(inputs_of(step)[0]), sizeof(count), stream_);
  cuda::wait(stream_);
  return count;
}

// Puts the first values of the states of a loop where the states are, and shows the body what is fixed.
void CudaProgram::start_loop(Step& step) {
  Loop& loop = *step.loop;
  const std::span<const Operand> inputs = inputs_of(step), outputs = outputs_of(step);
  for (int s = 0; s < loop.parts.states(); ++s) {
    const Operand& state = outputs[static_cast<size_t>(s)];
    const int initial = loop.parts.initial_of(s);
    const std::byte* from =
        initial < 0 ? nullptr : first_byte(inputs[static_cast<size_t>(initial)]);
    std::byte* const to = first_byte(state);
    if (!from) cuda::fill_zero(to, bytes_of(state), stream_);
    if (from && from != to) cuda::copy_on_device(to, from, bytes_of(state), stream_);
    loop.body.set_address(Place::state, s, to);
  }
  for (int i = loop.parts.first_captured(); i < loop.parts.first_initial(); ++i)
    loop.body.set_address(Place::input, i, first_byte(inputs[static_cast<size_t>(i)]));
}

void CudaProgram::run_loop(Step& step, bool replay) {
  Loop& loop = *step.loop;
  const std::span<const Operand> inputs = inputs_of(step);
  loop.count = count_of(step);
  check_repeat_count(loop.count, loop.parts);
  const bool is_replayed =
      replay && runs_ > 0 && loop.parts.states() > 0 && !waits_for_cuda_kernels();
  if (is_replayed && !loop.start.defined()) {
    cuda::Capture capture(stream_);
    start_loop(step);
    loop.start = capture.finish();
  }
  is_replayed ? loop.start.launch(stream_) : start_loop(step);
  for (int64_t n = 0; n < loop.count; ++n) {
    cuda::copy_on_device(loop.slots[0]->data(),
                         loop.indices->data() + n * static_cast<int64_t>(sizeof(int64_t)),
                         sizeof(int64_t), stream_);
    for (int i = 1; i < loop.parts.first_captured(); ++i) {
      const Operand& sliced = inputs[static_cast<size_t>(i)];
      const size_t bytes = bytes_of(sliced) / static_cast<size_t>(loop.parts.most);
      cuda::copy_on_device(loop.slots[static_cast<size_t>(i)]->data(),
                           first_byte(sliced) + static_cast<size_t>(n) * bytes, bytes, stream_);
    }
    loop.body.run(replay);
    launches_ += loop.body.launches_of_last_run();
  }
}

void CudaProgram::run(bool replay) {
  launches_ = 0;
  if (addresses_changed_) {  // captured work has the old ones
    for (Section& section : sections_) section.graph = {};
    for (Step& step : steps_) {
      if (step.loop) step.loop->start = {};
    }
  }
  upload_tables();
  const bool may_capture = replay && runs_ > 0 && !waits_for_cuda_kernels();
  for (Section& section : sections_) {
    if (section.is_loop) {
      run_loop(steps_[section.begin], replay);
      continue;
    }
    if (may_capture && !section.graph.defined()) {
      const int64_t before = launches_;
      cuda::Capture capture(stream_);
      for (size_t s = section.begin; s < section.end; ++s) launch_step(steps_[s]);
      section.graph = capture.finish();
      launches_ = before;  // recorded, not launched
    }
    if (may_capture) {
      section.graph.launch(stream_);
      ++launches_;
    } else {
      for (size_t s = section.begin; s < section.end; ++s) launch_step(steps_[s]);
    }
  }
  ++runs_;
}

void CudaProgram::run_timed(KernelTimes& times) {
  upload_tables();
  std::vector<cuda::Event> events(steps_.size() + 1);
  for (size_t s = 0; s < steps_.size(); ++s) {
    events[s].record(stream_);
    steps_[s].loop ? run_loop(steps_[s], /*replay=*/false) : launch_step(steps_[s]);
  }
  events.back().record(stream_);
  times.clock_seconds = empty_interval(stream_);
  times.begin.clear();
  times.seconds.clear();
  for (size_t s = 0; s < steps_.size(); ++s) {
    const double interval = cuda::seconds_between(events[s], events[s + 1]);
    times.begin.push_back(cuda::seconds_between(events[0], events[s]));
    times.seconds.push_back(std::max(interval - times.clock_seconds, 0.0));
  }
  ++runs_;
}

void CudaProgram::count_last_run() const {
  for (const Step& step : steps_) {
    const OpDef& op = step.kernel->op ? *step.kernel->op : kFused;
    if (!step.loop) count_work(op, step.kernel->cost);
    for (int64_t i = 0; step.loop && i < step.loop->count; ++i) step.loop->body.count_last_run();
  }
}

}  // namespace brrr
