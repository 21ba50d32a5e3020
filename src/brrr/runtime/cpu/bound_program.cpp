#include "brrr/runtime/cpu/bound_program.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "brrr/graph/count.h"

namespace brrr::runtime {
namespace {

constexpr int64_t kFillPieceBytes = 1 << 20;

// An address that stands for a buffer until its real one is set. Kernels compare addresses when they are
// bound, to see which operands share their bytes.
std::byte* stand_in(compiler::BufferId id) {
  return reinterpret_cast<std::byte*>((id.index() + 1) * size_t{64});  // NOLINT: never followed
}

int64_t bytes_of(const Operand& operand) { return storage_bytes(operand.dtype, operand.count()); }

// Puts the first value of a state where the state is: zero, or another value.
void start_state(const Operand& state, const Operand* initial, ThreadPool& pool) {
  std::byte* const to = first_byte(state);
  const std::byte* const from = initial ? first_byte(*initial) : nullptr;
  if (from == to) return;
  const int64_t bytes = bytes_of(state);
  pool.for_each_piece((bytes + kFillPieceBytes - 1) / kFillPieceBytes, [&](int64_t piece) {
    const int64_t begin = piece * kFillPieceBytes;
    const auto count = static_cast<size_t>(std::min(kFillPieceBytes, bytes - begin));
    if (from) {
      std::memcpy(to + begin, from + begin, count);
    } else {
      std::memset(to + begin, 0, count);  // the zero of every dtype
    }
  });
}

const OpDef kFused{.name = "fused", .formula = "", .kind = OpKind::elementwise};

void count_kernel(const compiler::Kernel& kernel) {
  count_work(kernel.op ? *kernel.op : kFused, kernel.cost);
}

}  // namespace

// A body, with an arena inside that of the program around it.
struct BoundProgram::Loop {
  Loop(const compiler::Kernel& kernel, std::byte* arena)
      : parts(graph::repeat_node(kernel.attrs)), body(*kernel.body, arena) {}
  graph::RepeatNode parts;
  BoundProgram body;
  int64_t index = 0;  // what the body reads as its first input
  int64_t count = 0;  // iterations of the last run
};

BoundProgram::BoundProgram(const compiler::KernelProgram& program, std::byte* arena)
    : program_(&program) {
  size_t operands = 0;  // all of them, since programs keep their addresses
  for (const compiler::Kernel& kernel : program.list.kernels) {
    operands += kernel.inputs.size() + kernel.core_inputs.size();
    operands += kernel.outputs.size() + kernel.core_outputs.size();
  }
  operands_.reserve(operands);
  steps_.reserve(program.list.kernels.size());
  for (const compiler::Kernel& kernel : program.list.kernels) add_step(kernel, arena);
  find_shown();
}

BoundProgram::~BoundProgram() = default;

std::byte* BoundProgram::address_of(compiler::BufferId id, std::byte* arena) const {
  if (program_->list.buffers[id.index()].place != compiler::Place::temporary) return stand_in(id);
  const int64_t offset = program_->plan.offsets[id.index()];
  return offset >= 0 ? arena + offset : nullptr;
}

void BoundProgram::add_operand(const Layout& layout, DType dtype, compiler::BufferId id,
                               std::byte* arena) {
  invariant(operands_.size() < operands_.capacity(), "an operand that nobody counted");
  operands_.push_back({id.valid() ? address_of(id, arena) : nullptr, &layout, dtype});
  buffers_.push_back(id);
}

// The operands of a step lie behind each other: those of its op or program, then those of each attachment.
void BoundProgram::add_step(const compiler::Kernel& kernel, std::byte* arena) {
  Step step{.kernel = &kernel,
            .first_operand = operands_.size(),
            .inputs = 0,
            .outputs = 0,
            .workspace = {},
            .tiles = nullptr,
            .loop = nullptr,
            .streams = {},
            .first_pieces = {0}};
  const auto add_core = [&](const std::vector<compiler::CoreOperand>& fused,
                            const std::vector<compiler::OperandRef>& refs) {
    cores_.push_back(compiler::core_operands(fused, refs));
    for (const compiler::CoreOperand& operand : cores_.back()) {
      const compiler::BufferId id = operand.index < 0
                                        ? compiler::BufferId()
                                        : refs[static_cast<size_t>(operand.index)].buffer;
      add_operand(operand.layout, operand.dtype, id, arena);
    }
    return cores_.back().size();
  };
  if (kernel.op || kernel.program) {
    step.inputs = add_core(kernel.core_inputs, kernel.inputs);
    step.outputs = add_core(kernel.core_outputs, kernel.outputs);
  }
  if (kernel.workspace.valid())
    step.workspace = {address_of(kernel.workspace, arena),
                      static_cast<size_t>(program_->list.buffers[kernel.workspace.index()].bytes)};
  if (kernel.program)
    step.tiles = std::make_unique<TileKernel>(*kernel.program, inputs_of(step), outputs_of(step));
  if (kernel.body) step.loop = std::make_unique<Loop>(kernel, step.workspace.data());
  add_streams(step, arena);
  steps_.push_back(std::move(step));
}

void BoundProgram::add_streams(Step& step, std::byte* arena) {
  const compiler::Kernel& kernel = *step.kernel;
  for (const compiler::Attachment& attachment : kernel.attachments) {
    const size_t first = operands_.size();
    for (int i : attachment.inputs) {
      const compiler::OperandRef& ref = kernel.inputs[static_cast<size_t>(i)];
      add_operand(ref.layout, ref.dtype, ref.buffer, arena);
    }
    for (int i : attachment.outputs) {
      const compiler::OperandRef& ref = kernel.outputs[static_cast<size_t>(i)];
      add_operand(ref.layout, ref.dtype, ref.buffer, arena);
    }
    const std::span<const Operand> all(operands_);
    step.streams.push_back(std::make_unique<TileStream>(
        *attachment.program, all.subspan(first, attachment.inputs.size()),
        all.subspan(first + attachment.inputs.size()), attachment.landing));
    step.first_pieces.push_back(step.first_pieces.back() + step.streams.back()->pieces());
  }
  for (size_t i = 0; i < kernel.core_inputs.size(); ++i) {
    if (const int a = kernel.core_inputs[i].attachment; a >= 0)
      operands_[step.first_operand + i].source = step.streams[static_cast<size_t>(a)].get();
  }
  for (size_t i = 0; i < kernel.core_outputs.size(); ++i) {
    if (const int a = kernel.core_outputs[i].attachment; a >= 0)
      operands_[step.first_operand + step.inputs + i].sink =
          step.streams[static_cast<size_t>(a)].get();
  }
}

// Counts, then fills: the operands of one place and index lie behind one another.
void BoundProgram::find_shown() {
  const auto for_each_shown = [&](const auto& visit) {
    for (size_t operand = 0; operand < buffers_.size(); ++operand) {
      if (!buffers_[operand].valid()) continue;
      const compiler::Buffer& buffer = program_->list.buffers[buffers_[operand].index()];
      if (buffer.place != compiler::Place::temporary) visit(buffer, operand);
    }
  };
  for (const compiler::Buffer& buffer : program_->list.buffers) {
    std::vector<Shown>& all = shown_in(buffer.place);
    all.resize(std::max(all.size(), static_cast<size_t>(buffer.index) + 1));
  }
  for_each_shown([&](const compiler::Buffer& buffer, size_t) {
    ++shown_in(buffer.place)[static_cast<size_t>(buffer.index)].count;
  });
  size_t first = 0;
  for (std::vector<Shown>& all : places_) {
    for (Shown& shown : all) {
      shown.first = first;
      first += std::exchange(shown.count, 0);
    }
  }
  shown_.resize(first);
  for_each_shown([&](const compiler::Buffer& buffer, size_t operand) {
    Shown& shown = shown_in(buffer.place)[static_cast<size_t>(buffer.index)];
    shown_[shown.first + shown.count++] = operand;
  });
}

void BoundProgram::set_address(compiler::Place place, int index, std::byte* address) {
  const Shown& shown = shown_in(place)[static_cast<size_t>(index)];
  for (size_t i = 0; i < shown.count; ++i) operands_[shown_[shown.first + i]].base = address;
}

void BoundProgram::run_loop(Step& step, ThreadPool& pool) {
  Loop& loop = *step.loop;
  const std::span<const Operand> inputs = inputs_of(step), outputs = outputs_of(step);
  loop.count = *inputs[0].data<int64_t>();
  graph::check_repeat_count(loop.count, loop.parts);
  for (int s = 0; s < loop.parts.states(); ++s) {
    const int initial = loop.parts.initial_of(s);
    const Operand& state = outputs[static_cast<size_t>(s)];
    start_state(state, initial < 0 ? nullptr : &inputs[static_cast<size_t>(initial)], pool);
    loop.body.set_address(compiler::Place::state, s, first_byte(state));
  }
  loop.body.set_address(compiler::Place::input, 0, reinterpret_cast<std::byte*>(&loop.index));
  for (int i = loop.parts.first_captured(); i < loop.parts.first_initial(); ++i)
    loop.body.set_address(compiler::Place::input, i, first_byte(inputs[static_cast<size_t>(i)]));
  for (loop.index = 0; loop.index < loop.count; ++loop.index) {
    for (int i = 1; i < loop.parts.first_captured(); ++i) {
      const Operand& sliced = inputs[static_cast<size_t>(i)];
      const int64_t slice_bytes = bytes_of(sliced) / loop.parts.most;
      loop.body.set_address(compiler::Place::input, i,
                            first_byte(sliced) + loop.index * slice_bytes);
    }
    loop.body.run(pool);
  }
}

// The pieces of all programs, one after another, shared among the threads.
void BoundProgram::run_side_by_side(const Step& step, ThreadPool& pool) {
  const std::vector<int64_t>& first = step.first_pieces;
  pool.for_each_piece(first.back(), [&](int64_t piece) {
    const auto behind = std::upper_bound(first.begin(), first.end(), piece);
    const auto p = static_cast<size_t>(behind - first.begin()) - 1;
    step.streams[p]->run_piece(piece - first[p]);
  });
}

void BoundProgram::run_step(Step& step, ThreadPool& pool) {
  if (step.tiles) return step.tiles->run(inputs_of(step), outputs_of(step), pool);
  if (step.loop) return run_loop(step, pool);
  const compiler::Kernel& kernel = *step.kernel;
  if (!kernel.op) return run_side_by_side(step, pool);
  kernel.op->cpu(
      {*kernel.op, inputs_of(step), outputs_of(step), kernel.attrs, step.workspace, pool});
}

void BoundProgram::run(ThreadPool& pool) {
  for (Step& step : steps_) run_step(step, pool);
}

void BoundProgram::run_timed(ThreadPool& pool, KernelTimes& times) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  times.begin.clear();
  times.seconds.clear();
  times.begin.reserve(steps_.size());
  times.seconds.reserve(steps_.size());
  const Clock::time_point start = Clock::now();
  for (Step& step : steps_) {
    const Clock::time_point begin = Clock::now();
    run_step(step, pool);
    times.begin.push_back(seconds(begin - start));
    times.seconds.push_back(seconds(Clock::now() - begin));
  }
}

void BoundProgram::count_last_run() const {
  for (const Step& step : steps_) {
    if (!step.loop) {
      count_kernel(*step.kernel);
      continue;
    }
    for (int64_t i = 0; i < step.loop->count; ++i) step.loop->body.count_last_run();
  }
}

void count_run(const compiler::KernelList& list) {
  for (const compiler::Kernel& kernel : list.kernels) {
    if (!kernel.body) {
      count_kernel(kernel);
      continue;
    }
    for (int64_t i = 0; i < graph::repeat_node(kernel.attrs).most; ++i)
      count_run(kernel.body->list);
  }
}

}  // namespace brrr::runtime
