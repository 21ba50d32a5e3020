#include "brrr/runtime/cuda/cuda_program.h"

#include <algorithm>
#include <set>

#include "brrr/device/cuda/generated.h"
#include "brrr/graph/count.h"
#include "brrr/graph/cuda_launch.h"
#include "brrr/runtime/cuda/cuda_loop.h"

namespace brrr::runtime {
namespace {

int64_t table_bytes(const compiler::GeneratedLaunch& launch) {
  return static_cast<int64_t>(launch.pointers.size() * sizeof(void*));
}

// Compiles what is not in a cache yet on all threads. A failure is found again, and told, by the one who
// needs the kernel.
void compile_at_once(const compiler::KernelList& list, const std::string& architecture) {
  std::vector<const cuda::SourceText*> sources;
  std::set<std::string_view> seen;
  for (const compiler::Kernel& kernel : list.kernels) {
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

Bytes side_bytes(const compiler::KernelList& list) {
  int64_t bytes = 0;
  for (const compiler::Kernel& kernel : list.kernels) {
    if (kernel.body) bytes += loop_bytes(kernel);
    if (!kernel.generated) continue;
    for (const compiler::GeneratedLaunch& launch : kernel.generated->launches) {
      if (launch.is_table) bytes += side_block(table_bytes(launch));
    }
  }
  return Bytes(bytes);
}

CudaProgram::CudaProgram(const compiler::KernelProgram& program, std::byte* arena, int device)
    : program_(&program), device_(device), stream_(cuda::stream(device)) {
  compile_at_once(program.list, cuda::architecture_of(device));
  size_t operands = 0;
  for (const compiler::Kernel& kernel : program.list.kernels)
    operands += kernel.inputs.size() + kernel.outputs.size();
  operands_.reserve(operands);
  steps_.reserve(program.list.kernels.size());
  for (const compiler::Kernel& kernel : program.list.kernels) add_step(kernel, arena);
  add_sections();
}

CudaProgram::~CudaProgram() = default;

std::byte* CudaProgram::arena_address(compiler::BufferId id, std::byte* arena) const {
  if (!id.valid() || program_->list.buffers[id.index()].place != compiler::Place::temporary)
    return nullptr;
  const int64_t offset = program_->plan.offsets[id.index()];
  return offset >= 0 ? arena + offset : nullptr;
}

void CudaProgram::add_step(const compiler::Kernel& kernel, std::byte* arena) {
  Step step{.kernel = &kernel, .first_operand = operands_.size()};
  for (const std::vector<compiler::OperandRef>* refs : {&kernel.inputs, &kernel.outputs}) {
    for (const compiler::OperandRef& ref : *refs) {
      operands_.push_back({arena_address(ref.buffer, arena), &ref.layout, ref.dtype});
      buffers_.push_back(ref.buffer);
    }
  }
  if (kernel.workspace.valid())
    step.workspace = {arena_address(kernel.workspace, arena),
                      static_cast<size_t>(program_->list.buffers[kernel.workspace.index()].bytes)};
  if (kernel.body) {
    step.loop = std::make_unique<Loop>(program_->list, kernel, step.workspace.data(), device_);
  } else if (kernel.generated) {
    for (const compiler::GeneratedLaunch& launch : kernel.generated->launches) {
      step.code.push_back(&cuda::generated_kernel(kernel.generated->source, launch.entry, device_));
      step.tables.push_back(launch.is_table ? device_bytes(device_, table_bytes(launch))
                                            : Ref<Storage>());
    }
  } else {
    step.op_kernel = kernel.op ? find_cuda_kernel(*kernel.op) : nullptr;
    check(step.op_kernel && step.op_kernel->run, kernel.name,
          ": has no CUDA kernel and no composition; run ", "the program on the cpu");
  }
  steps_.push_back(std::move(step));
}

void CudaProgram::add_sections() {
  for (size_t s = 0; s < steps_.size(); ++s) {
    if (sections_.empty() || sections_.back().loop) sections_.push_back({.begin = s, .end = s});
    if (steps_[s].loop) {
      sections_.back().loop = &steps_[s];
    } else {
      sections_.back().end = s + 1;
    }
  }
}

std::span<const Operand> CudaProgram::inputs_of(const Step& step) const {
  return std::span(operands_).subspan(step.first_operand, step.kernel->inputs.size());
}
std::span<const Operand> CudaProgram::outputs_of(const Step& step) const {
  return std::span(operands_).subspan(step.first_operand + step.kernel->inputs.size(),
                                      step.kernel->outputs.size());
}

void CudaProgram::set_address(compiler::Place place, int index, std::byte* address) {
  constexpr uintptr_t kAligned = 16;  // what packs of generated kernels rely on
  check(reinterpret_cast<uintptr_t>(address) % kAligned == 0,
        "compile: a tensor of a GPU program begins at an address that is no multiple of 16 bytes; ",
        "copy it first with clone(x)");
  for (size_t i = 0; i < operands_.size(); ++i) {
    const compiler::Buffer& buffer = program_->list.buffers[buffers_[i].index()];
    if (buffer.place != place || buffer.index != index || operands_[i].base == address) continue;
    operands_[i].base = address;
    addresses_changed_ = true;
  }
}

// ---- launches ------------------------------------------------------------------------------------
void* CudaProgram::address_of(const Step& step, const compiler::KernelPointer& pointer) const {
  const auto index = static_cast<size_t>(pointer.index);
  switch (pointer.from) {
    case compiler::KernelPointer::From::input: return first_byte(inputs_of(step)[index]);
    case compiler::KernelPointer::From::output: return first_byte(outputs_of(step)[index]);
    case compiler::KernelPointer::From::workspace: return step.workspace.data() + index;
  }
  return nullptr;
}

void CudaProgram::upload_tables() {
  if (!addresses_changed_) return;
  for (Step& step : steps_) {
    for (size_t l = 0; l < step.tables.size(); ++l) {
      if (!step.tables[l]) continue;
      std::vector<void*> pointers;
      for (const compiler::KernelPointer& pointer : step.kernel->generated->launches[l].pointers)
        pointers.push_back(address_of(step, pointer));
      cuda::copy_to_device(step.tables[l]->data(), static_cast<const void*>(pointers.data()),
                           pointers.size() * sizeof(void*), stream_);
    }
  }
  addresses_changed_ = false;
}

void CudaProgram::wait_for(const compiler::Kernel& kernel) const {
  try {
    cuda::wait(stream_);
  } catch (const Error& error) {
    std::string operands;
    for (const std::vector<compiler::OperandRef>* refs : {&kernel.inputs, &kernel.outputs}) {
      if (refs == &kernel.outputs) operands += " ->";
      for (const compiler::OperandRef& ref : *refs)
        operands += join_text(" ", ref.dtype, ref.layout.shape);
    }
    fail(error.what(), "; it ran ", kernel.name, " of", operands);
  }
}

void CudaProgram::launch_generated(Step& step) {
  const compiler::GeneratedKernel& kernel = *step.kernel->generated;
  for (size_t l = 0; l < kernel.launches.size(); ++l) {
    const compiler::GeneratedLaunch& launch = kernel.launches[l];
    std::vector<void*> pointers, more, arguments;
    if (launch.is_table) {
      pointers.push_back(step.tables[l]->data());
    } else {
      for (const compiler::KernelPointer& pointer : launch.pointers)
        pointers.push_back(address_of(step, pointer));
    }
    if (pointers.empty()) pointers.push_back(nullptr);  // an empty struct is a parameter too
    for (const compiler::KernelPointer& pointer : launch.more)
      more.push_back(address_of(step, pointer));
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
  const compiler::Kernel& kernel = *step.kernel;
  if (kernel.generated) return launch_generated(step);
  launch_cuda(*step.op_kernel, {*kernel.op, inputs_of(step), outputs_of(step), kernel.attrs,
                                step.workspace, stream_, cuda::device_facts(device_)});
  ++launches_;
}

void CudaProgram::launch_steps(const Section& section) {
  for (size_t s = section.begin; s < section.end; ++s) launch_step(steps_[s]);
}

void CudaProgram::launch_recorded(cuda::Graph& graph, const std::function<void()>& work) {
  if (!graph.defined()) {
    const int64_t before = launches_;
    cuda::Capture capture(stream_);
    work();
    graph = capture.finish();
    launches_ = before;  // recorded, not launched
  }
  graph.launch(stream_);
  ++launches_;
}

void CudaProgram::run(bool replay) {
  launches_ = 0;
  if (addresses_changed_) {  // captured work has the old ones
    for (Section& section : sections_) section.graph = {}, section.next = {};
  }
  upload_tables();
  const bool is_replayed = replay && runs_ > 0 && !waits_for_cuda_kernels();
  for (Section& section : sections_) {
    if (section.loop && is_replayed && may_record(*section.loop)) {
      replay_loop(section);
    } else if (section.loop) {
      launch_steps(section);
      run_loop(*section.loop);
    } else if (is_replayed) {
      launch_recorded(section.graph, [&] { launch_steps(section); });
    } else {
      launch_steps(section);
    }
  }
  ++runs_;
}

void CudaProgram::run_timed(KernelTimes& times) {
  upload_tables();
  std::vector<cuda::Event> events(steps_.size() + 1);
  for (size_t s = 0; s < steps_.size(); ++s) {
    events[s].record(stream_);
    steps_[s].loop ? run_loop(steps_[s]) : launch_step(steps_[s]);
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

}  // namespace brrr::runtime
