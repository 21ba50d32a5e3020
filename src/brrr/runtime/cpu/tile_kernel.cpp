#include "brrr/runtime/cpu/tile_kernel.h"

#include <algorithm>
#include <tuple>

#include "brrr/kernels/cpu/elementwise/convert_cpu.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"

namespace brrr::runtime {
namespace {

constexpr int64_t kBufferBytes = 40 << 10;  // of the 48 KiB of an L1 cache
constexpr int64_t kMinTile = 64;
constexpr size_t kMaxOperands = 64;  // their tiles lie in the L1 cache
constexpr int64_t kLineBytes = 64;
// Between buffers, which would else lie a multiple of 4 KiB apart: a load then waits for a store to the
// same place of another page, and all compete for the same lines of the L1 cache.
constexpr int64_t kStaggerBytes = 3 * kLineBytes;
constexpr int64_t kStackBytes = 2 * kBufferBytes;

void run_through(const compiler::TileStep& step, const void* from, void* to, int64_t count) {
  const ComputeType type = compute_type(step.dtype);
  if (step.dtype == natural_dtype(type)) {
    kernels::store_elements(step.type, from, step.dtype, static_cast<std::byte*>(to), 0, 1, count);
    return;
  }
  alignas(64) std::byte held[kTileElements * sizeof(double)];
  kernels::store_elements(step.type, from, step.dtype, held, 0, 1, count);
  kernels::load_elements(step.dtype, held, 0, 1, count, type, to);
}

}  // namespace

TileKernel::Path TileKernel::path_of(const Operand& operand, const Shape& shape, ComputeType type,
                                     bool direct) {
  const Layout* layouts[] = {operand.layout};
  Path path{.kind = Path::Kind::gathered,
            .nest = kernels::make_nest(shape, layouts),
            .element_bytes = bit_size(operand.dtype) / 8};
  if (direct && operand.dtype == natural_dtype(type) && path.nest.is_flat(0)) {
    path.kind = Path::Kind::direct;
  } else if (path.nest.is_constant(0)) {
    path.kind = Path::Kind::constant;
  }
  return path;
}

// True when the step that makes the stored slot is not followed by one that reads `slot`: both may then
// be the same memory.
bool TileKernel::can_write_directly(const compiler::TileTransfer& store, int slot) const {
  bool is_made = false;
  for (const compiler::TileStep& step : program_->steps_) {
    const bool reads = std::find(step.inputs.begin(), step.inputs.end(), slot) != step.inputs.end();
    if (is_made && reads) return false;
    if (step.output == store.slot) is_made = true;
  }
  return is_made;
}

TileKernel::TileKernel(const compiler::TileProgram& program, std::span<const Operand> inputs,
                       std::span<const Operand> outputs, int landing)
    : program_(&program), tile_(kTileElements) {
  invariant(inputs.size() <= kMaxOperands && outputs.size() <= kMaxOperands, "a tile program of ",
            inputs.size(), " inputs and ", outputs.size(), " outputs");
  for (const compiler::TileTransfer& load : program.loads_) {
    const Operand& input = inputs[static_cast<size_t>(load.operand)];
    load_paths_.push_back(path_of(input, program.shape_, load.type, true));
  }
  for (const compiler::TileTransfer& store : program.stores_) {
    const Operand& output = outputs[static_cast<size_t>(store.operand)];
    const auto is_at_an_end = [&](const std::optional<compiler::TileTransfer>& end) {
      return end && end->slot == store.slot;  // which has an address of its own
    };
    bool direct = !is_at_an_end(program.captured_) && !is_at_an_end(program.given_);
    for (const compiler::TileTransfer& load : program.loads_) {
      const Operand& input = inputs[static_cast<size_t>(load.operand)];
      const bool shared = input.base == output.base && input.base != nullptr;
      if (shared) direct = direct && can_write_directly(store, load.slot);
    }
    if (store.operand == landing && program.given_)
      direct = direct && can_write_directly(store, program.given_->slot);
    Path path = path_of(output, program.shape_, store.type, direct);
    if (path.kind == Path::Kind::constant) path.kind = Path::Kind::gathered;  // one element
    store_paths_.push_back(path);
  }
  place_slots();
}

// Which slots need a buffer: not those whose tile is an operand itself or comes with the call, and not
// constants that chains alone read.
void TileKernel::place_slots() {
  const auto slots = static_cast<size_t>(program_->slots_);
  std::vector<bool> needs_none(slots, false), is_constant(slots, false);
  is_spread_.assign(slots, false);
  for (size_t i = 0; i < load_paths_.size(); ++i) {
    const auto slot = static_cast<size_t>(program_->loads_[i].slot);
    needs_none[slot] = load_paths_[i].kind == Path::Kind::direct;
    is_constant[slot] = load_paths_[i].kind == Path::Kind::constant;
  }
  for (size_t i = 0; i < store_paths_.size(); ++i) {
    if (store_paths_[i].kind == Path::Kind::direct)
      needs_none[static_cast<size_t>(program_->stores_[i].slot)] = true;
  }
  for (const std::optional<compiler::TileTransfer>* end :
       {&program_->given_, &program_->captured_}) {
    if (*end) needs_none[static_cast<size_t>((*end)->slot)] = true;
  }
  for (const compiler::TileStep& step : program_->steps_) {
    uint64_t constants = 0;
    for (int i = 0; i < step.inputs.size(); ++i) {
      const auto slot = static_cast<size_t>(step.inputs[i]);
      if (step.kind != compiler::TileStep::Kind::chain) is_spread_[slot] = is_constant[slot];
      if (is_constant[slot]) constants |= uint64_t{1} << i;
    }
    constants_.push_back(constants);
  }
  int64_t bytes = 0;
  for (size_t slot = 0; slot < slots; ++slot) {
    const bool whole = !needs_none[slot] && (!is_constant[slot] || is_spread_[slot]);
    bytes += whole ? compute_bytes(program_->slot_types_[slot]) : 0;
  }
  while (tile_ > kMinTile && tile_ * bytes > kBufferBytes) tile_ /= 2;
  int64_t next = 0;
  for (size_t slot = 0; slot < slots; ++slot) {
    offsets_.push_back(needs_none[slot] ? -1 : next);
    if (needs_none[slot]) continue;
    const bool one = is_constant[slot] && !is_spread_[slot];
    next += one ? kLineBytes : tile_ * compute_bytes(program_->slot_types_[slot]) + kStaggerBytes;
  }
  invariant(next <= kStackBytes, "a tile program of ", slots, " slots");
}

int64_t TileKernel::pieces() const {
  return (numel(program_->shape_) + kernels::kPieceElements - 1) / kernels::kPieceElements;
}

void TileKernel::run_piece(std::span<const Operand> inputs, std::span<const Operand> outputs,
                           int64_t piece) const {
  const int64_t total = numel(program_->shape_);
  run_range(
      inputs, outputs,
      {piece * kernels::kPieceElements, std::min(total, (piece + 1) * kernels::kPieceElements)});
}

void TileKernel::run(std::span<const Operand> inputs, std::span<const Operand> outputs,
                     ThreadPool& pool) const {
  if (pieces() == 0) return;
  pool.for_each_piece(pieces(), [&](int64_t piece) { run_piece(inputs, outputs, piece); });
}

void TileKernel::fill_constants(std::span<const Operand> inputs, int64_t count,
                                const Slots& own) const {
  for (size_t i = 0; i < load_paths_.size(); ++i) {
    if (load_paths_[i].kind != Path::Kind::constant) continue;
    const compiler::TileTransfer& constant = program_->loads_[i];
    const Operand& input = inputs[static_cast<size_t>(constant.operand)];
    kernels::load_elements(input.dtype, input.base, input.layout->offset, 0,
                           is_spread_[static_cast<size_t>(constant.slot)] ? count : 1,
                           constant.type, own[constant.slot]);
  }
}

void TileKernel::run_steps(const Slots& at, int64_t count) const {
  for (size_t s = 0; s < program_->steps_.size(); ++s) {
    const compiler::TileStep& step = program_->steps_[s];
    if (step.kind == compiler::TileStep::Kind::through) {
      run_through(step, at[step.inputs[0]], at[step.output], count);
    } else if (step.kind == compiler::TileStep::Kind::chain) {
      const float* inputs[kernels::kMaxChainInputs];
      for (int i = 0; i < step.inputs.size(); ++i)
        inputs[i] = reinterpret_cast<const float*>(at[step.inputs[i]]);
      kernels::run_chain(
          {step.chain, inputs, constants_[s], reinterpret_cast<float*>(at[step.output]), count});
    } else {
      TileCall call{.inputs = {}, .output = at[step.output], .count = count, .attrs = step.attrs};
      for (int i = 0; i < step.inputs.size(); ++i) call.inputs[i] = at[step.inputs[i]];
      step.tile(call);
    }
  }
}

void TileKernel::run_range(std::span<const Operand> inputs, std::span<const Operand> outputs,
                           const Range& range) const {
  alignas(64) std::byte buffer[kStackBytes];
  Slots own;
  for (int64_t offset : offsets_) own.push_back(offset < 0 ? nullptr : buffer + offset);
  fill_constants(inputs, std::min(tile_, range.end - range.begin), own);
  Slots at = own;  // where each slot is for this tile: its buffer, or an operand itself
  const auto& [given, captured] = std::tie(program_->given_, program_->captured_);
  for (int64_t begin = range.begin; begin < range.end; begin += tile_) {
    const int64_t count = std::min(tile_, range.end - begin), done = begin - range.begin;
    load(inputs, begin, count, own, at);
    for (size_t i = 0; i < store_paths_.size(); ++i) {
      const compiler::TileTransfer& result = program_->stores_[i];
      if (store_paths_[i].kind == Path::Kind::direct)
        at[result.slot] =
            store_paths_[i].address(outputs[static_cast<size_t>(result.operand)], begin);
    }
    if (given)  // read only
      at[given->slot] = static_cast<std::byte*>(const_cast<void*>(range.given)) +
                        done * compute_bytes(given->type);
    if (captured)
      at[captured->slot] =
          static_cast<std::byte*>(range.captured) + done * compute_bytes(captured->type);
    run_steps(at, count);
    store(outputs, begin, count, at);
  }
}

void TileKernel::load(std::span<const Operand> inputs, int64_t begin, int64_t count,
                      const Slots& own, Slots& at) const {
  for (size_t i = 0; i < load_paths_.size(); ++i) {
    const compiler::TileTransfer& transfer = program_->loads_[i];
    const Operand& input = inputs[static_cast<size_t>(transfer.operand)];
    if (load_paths_[i].kind == Path::Kind::direct) {
      at[transfer.slot] = load_paths_[i].address(input, begin);
    } else if (load_paths_[i].kind == Path::Kind::gathered) {
      std::byte* out = own[transfer.slot];
      kernels::for_each_run(
          load_paths_[i].nest, 0, begin, count, [&](int64_t position, int64_t run, int64_t stride) {
            kernels::load_elements(input.dtype, input.base, input.layout->offset + position, stride,
                                   run, transfer.type, out);
            out += run * compute_bytes(transfer.type);
          });
    }
  }
}

void TileKernel::store(std::span<const Operand> outputs, int64_t begin, int64_t count,
                       const Slots& at) const {
  for (size_t i = 0; i < store_paths_.size(); ++i) {
    if (store_paths_[i].kind == Path::Kind::direct) continue;
    const compiler::TileTransfer& transfer = program_->stores_[i];
    const Operand& output = outputs[static_cast<size_t>(transfer.operand)];
    const std::byte* values = at[transfer.slot];
    kernels::for_each_run(
        store_paths_[i].nest, 0, begin, count, [&](int64_t position, int64_t run, int64_t stride) {
          kernels::store_elements(transfer.type, values, output.dtype, output.base,
                                  output.layout->offset + position, stride, run);
          values += run * compute_bytes(transfer.type);
        });
  }
}

}  // namespace brrr::runtime
