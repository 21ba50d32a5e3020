#include "brrr/runtime/bound_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "brrr/graph/count.h"

namespace brrr {
namespace {

constexpr int64_t kFillPieceBytes = 1 << 20;

// An address that stands for a buffer until its real one is set. Kernels compare addresses when they are
// bound, to see which operands share their bytes.
std::byte* stand_in(BufferId id) {
  return reinterpret_cast<std::byte*>((id.index() + 1) * size_t{64});  // NOLINT: never followed
}

std::byte* first_byte(const Operand& operand) {
  return operand.base + storage_bytes(operand.dtype, operand.layout->offset);
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

void count_kernel(const Kernel& kernel) {
  count_work(kernel.op ? *kernel.op : kFused, kernel.cost);
}

}  // namespace

// A body, with an arena inside that of the program around it.
struct BoundProgram::Loop {
  Loop(const Kernel& kernel, std::byte* arena)
      : parts(repeat_node(kernel.attrs)), body(*kernel.body, arena) {}
  RepeatNode parts;
  BoundProgram body;
  int64_t index = 0;  // what the body reads as its first input
  int64_t count = 0;  // iterations of the last run
};

BoundProgram::BoundProgram(const KernelProgram& program, std::byte* arena) : program_(&program) {
  size_t operands = 0;
  for (const Kernel& kernel : program.list.kernels)
    operands += kernel.inputs.size() + kernel.outputs.size();
  operands_.reserve(operands);
  steps_.reserve(program.list.kernels.size());
  for (const Kernel& kernel : program.list.kernels) add_step(kernel, arena);
  find_shown();
}

BoundProgram::~BoundProgram() = default;

std::byte* BoundProgram::address_of(BufferId id, std::byte* arena) const {
  if (program_->list.buffers[id.index()].place != Place::temporary) return stand_in(id);
  const int64_t offset = program_->plan.offsets[id.index()];
  return offset >= 0 ? arena + offset : nullptr;
}

void BoundProgram::add_step(const Kernel& kernel, std::byte* arena) {
  Step step{.kernel = &kernel,
            .first_operand = operands_.size(),
            .inputs = kernel.inputs.size(),
            .outputs = kernel.outputs.size(),
            .workspace = {},
            .tiles = nullptr,
            .loop = nullptr};
  for (const auto* refs : {&kernel.inputs, &kernel.outputs}) {
    for (const OperandRef& ref : *refs)
      operands_.push_back({address_of(ref.buffer, arena), &ref.layout, ref.dtype});
  }
  if (kernel.workspace.valid())
    step.workspace = {address_of(kernel.workspace, arena),
                      static_cast<size_t>(program_->list.buffers[kernel.workspace.index()].bytes)};
  if (kernel.program)
    step.tiles = std::make_unique<TileKernel>(*kernel.program, inputs_of(step), outputs_of(step));
  if (kernel.body) step.loop = std::make_unique<Loop>(kernel, step.workspace.data());
  steps_.push_back(std::move(step));
}

// Counts, then fills: the operands of one place and index lie behind one another.
void BoundProgram::find_shown() {
  const auto for_each_shown = [&](const auto& visit) {
    size_t operand = 0;
    for (const Kernel& kernel : program_->list.kernels) {
      for (const auto* refs : {&kernel.inputs, &kernel.outputs}) {
        for (const OperandRef& ref : *refs) {
          const Buffer& buffer = program_->list.buffers[ref.buffer.index()];
          if (buffer.place != Place::temporary) visit(buffer, operand);
          ++operand;
        }
      }
    }
  };
  for (const Buffer& buffer : program_->list.buffers) {
    std::vector<Shown>& all = shown_in(buffer.place);
    all.resize(std::max(all.size(), static_cast<size_t>(buffer.index) + 1));
  }
  for_each_shown([&](const Buffer& buffer, size_t) {
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
  for_each_shown([&](const Buffer& buffer, size_t operand) {
    Shown& shown = shown_in(buffer.place)[static_cast<size_t>(buffer.index)];
    shown_[shown.first + shown.count++] = operand;
  });
}

void BoundProgram::set_address(Place place, int index, std::byte* address) {
  const Shown& shown = shown_in(place)[static_cast<size_t>(index)];
  for (size_t i = 0; i < shown.count; ++i) operands_[shown_[shown.first + i]].base = address;
}

void BoundProgram::run_loop(Step& step, ThreadPool& pool) {
  Loop& loop = *step.loop;
  const std::span<const Operand> inputs = inputs_of(step), outputs = outputs_of(step);
  loop.count = *inputs[0].data<int64_t>();
  check_repeat_count(loop.count, loop.parts);
  for (int s = 0; s < loop.parts.states(); ++s) {
    const int initial = loop.parts.initial_of(s);
    const Operand& state = outputs[static_cast<size_t>(s)];
    start_state(state, initial < 0 ? nullptr : &inputs[static_cast<size_t>(initial)], pool);
    loop.body.set_address(Place::state, s, first_byte(state));
  }
  loop.body.set_address(Place::input, 0, reinterpret_cast<std::byte*>(&loop.index));
  for (int i = loop.parts.first_captured(); i < loop.parts.first_initial(); ++i)
    loop.body.set_address(Place::input, i, first_byte(inputs[static_cast<size_t>(i)]));
  for (loop.index = 0; loop.index < loop.count; ++loop.index) {
    for (int i = 1; i < loop.parts.first_captured(); ++i) {
      const Operand& sliced = inputs[static_cast<size_t>(i)];
      const int64_t slice_bytes = bytes_of(sliced) / loop.parts.most;
      loop.body.set_address(Place::input, i, first_byte(sliced) + loop.index * slice_bytes);
    }
    loop.body.run(pool);
  }
}

void BoundProgram::run_step(Step& step, ThreadPool& pool) {
  if (step.tiles) return step.tiles->run(inputs_of(step), outputs_of(step), pool);
  if (step.loop) return run_loop(step, pool);
  const Kernel& kernel = *step.kernel;
  kernel.op->cpu(
      {*kernel.op, inputs_of(step), outputs_of(step), kernel.attrs, step.workspace, pool});
}

void BoundProgram::run(ThreadPool& pool) {
  for (Step& step : steps_) run_step(step, pool);
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

void count_run(const KernelList& list) {
  for (const Kernel& kernel : list.kernels) {
    if (!kernel.body) {
      count_kernel(kernel);
      continue;
    }
    for (int64_t i = 0; i < repeat_node(kernel.attrs).most; ++i) count_run(kernel.body->list);
  }
}

}  // namespace brrr
