// Running tile programs: threads over pieces, tiles through the steps.
#include <algorithm>

#include "brrr/compiler/tile_program.h"
#include "brrr/ops/convert_cpu.h"
#include "brrr/ops/elementwise_cpu.h"

namespace brrr {
namespace {

constexpr int64_t kBufferBytes = 40 << 10;  // of the 48 KiB of an L1 cache
constexpr int64_t kMinTile = 64;

std::byte* direct_address(const Operand& operand, int64_t element) {
  return operand.base + (operand.layout->offset + element) * (bit_size(operand.dtype) / 8);
}

void run_through(const TileStep& step, const void* from, void* to, int64_t count) {
  const ComputeType type = compute_type(step.dtype);
  if (step.dtype == natural_dtype(type)) {
    store_elements(step.type, from, step.dtype, static_cast<std::byte*>(to), 0, 1, count);
    return;
  }
  alignas(64) std::byte held[kTileElements * sizeof(double)];
  store_elements(step.type, from, step.dtype, held, 0, 1, count);
  load_elements(step.dtype, held, 0, 1, count, type, to);
}

}  // namespace

TileKernel::Path TileKernel::path_of(const Operand& operand, const Shape& shape, ComputeType type,
                                     bool direct) {
  const Layout* layouts[] = {operand.layout};
  Path path{.kind = Path::Kind::gathered, .nest = make_nest(shape, layouts)};
  if (direct && operand.dtype == natural_dtype(type) && path.nest.is_flat(0)) {
    path.kind = Path::Kind::direct;
  } else if (path.nest.is_constant(0)) {
    path.kind = Path::Kind::constant;
  }
  return path;
}

TileKernel::TileKernel(const TileProgram& program, std::span<const Operand> inputs,
                       std::span<const Operand> outputs)
    : program_(&program), tile_(kTileElements) {
  for (const TileTransfer& load : program.loads_) {
    const Operand& input = inputs[static_cast<size_t>(load.operand)];
    load_paths_.push_back(path_of(input, program.shape_, load.type, true));
  }
  for (const TileTransfer& store : program.stores_) {
    // Where an output lies on an input, a step could overwrite what a later one reads.
    const Operand& output = outputs[static_cast<size_t>(store.operand)];
    const bool shared = std::any_of(inputs.begin(), inputs.end(), [&](const Operand& input) {
      return input.base == output.base && input.base != nullptr;
    });
    Path path = path_of(output, program.shape_, store.type, !shared);
    if (path.kind == Path::Kind::constant) path.kind = Path::Kind::gathered;  // one element
    store_paths_.push_back(path);
  }
  int64_t bytes = 0;
  for (ComputeType type : program.slot_types_) bytes += compute_bytes(type);
  while (tile_ > kMinTile && tile_ * bytes > kBufferBytes) tile_ /= 2;
  invariant(tile_ * bytes <= 2 * kBufferBytes, "a tile program of ", program.slots_, " slots");
}

void TileKernel::run(std::span<const Operand> inputs, std::span<const Operand> outputs,
                     ThreadPool& pool) const {
  const int64_t total = numel(program_->shape_);
  if (total == 0) return;
  pool.for_each_piece((total + kPieceElements - 1) / kPieceElements, [&](int64_t piece) {
    run_piece(inputs, outputs, piece * kPieceElements,
              std::min(total, (piece + 1) * kPieceElements));
  });
}

void TileKernel::run_piece(std::span<const Operand> inputs, std::span<const Operand> outputs,
                           int64_t begin, int64_t end) const {
  alignas(64) std::byte buffer[2 * kBufferBytes];
  Slots own;
  std::byte* next = buffer;
  for (ComputeType type : program_->slot_types_) {
    own.push_back(next);
    next += tile_ * compute_bytes(type);
  }
  for (size_t i = 0; i < load_paths_.size(); ++i) {
    if (load_paths_[i].kind != Path::Kind::constant) continue;
    const TileTransfer& constant = program_->loads_[i];
    const Operand& input = inputs[static_cast<size_t>(constant.operand)];
    load_elements(input.dtype, input.base, input.layout->offset, 0, tile_, constant.type,
                  own[constant.slot]);
  }
  Slots at = own;  // where each slot is for this tile: its buffer, or an operand itself
  for (; begin < end; begin += tile_) {
    const int64_t count = std::min(tile_, end - begin);
    load(inputs, begin, count, own, at);
    for (size_t i = 0; i < store_paths_.size(); ++i) {
      const TileTransfer& result = program_->stores_[i];
      if (store_paths_[i].kind == Path::Kind::direct)
        at[result.slot] = direct_address(outputs[static_cast<size_t>(result.operand)], begin);
    }
    for (const TileStep& step : program_->steps_) {
      if (step.kind == TileStep::Kind::through) {
        run_through(step, at[step.inputs[0]], at[step.output], count);
        continue;
      }
      TileCall call{.inputs = {}, .output = at[step.output], .count = count, .attrs = step.attrs};
      for (int i = 0; i < step.inputs.size(); ++i) call.inputs[i] = at[step.inputs[i]];
      step.tile(call);
    }
    store(outputs, begin, count, at);
  }
}

void TileKernel::load(std::span<const Operand> inputs, int64_t begin, int64_t count,
                      const Slots& own, Slots& at) const {
  for (size_t i = 0; i < load_paths_.size(); ++i) {
    const TileTransfer& transfer = program_->loads_[i];
    const Operand& input = inputs[static_cast<size_t>(transfer.operand)];
    if (load_paths_[i].kind == Path::Kind::direct) {
      at[transfer.slot] = direct_address(input, begin);
    } else if (load_paths_[i].kind == Path::Kind::gathered) {
      std::byte* out = own[transfer.slot];
      for_each_run(load_paths_[i].nest, 0, begin, count,
                   [&](int64_t position, int64_t run, int64_t stride) {
                     load_elements(input.dtype, input.base, input.layout->offset + position, stride,
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
    const TileTransfer& transfer = program_->stores_[i];
    const Operand& output = outputs[static_cast<size_t>(transfer.operand)];
    const std::byte* values = at[transfer.slot];
    for_each_run(store_paths_[i].nest, 0, begin, count,
                 [&](int64_t position, int64_t run, int64_t stride) {
                   store_elements(transfer.type, values, output.dtype, output.base,
                                  output.layout->offset + position, stride, run);
                   values += run * compute_bytes(transfer.type);
                 });
  }
}

}  // namespace brrr
