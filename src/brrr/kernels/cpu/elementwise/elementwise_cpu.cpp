#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"

#include "brrr/kernels/cpu/elementwise/convert_cpu.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"
#include "brrr/kernels/cpu/elementwise/stream_cpu.h"

namespace brrr::kernels {
namespace {

// How a tile of an operand comes to lie contiguous in the compute type.
enum class Access : uint8_t {
  direct,    // it already does: use the storage itself
  constant,  // one element: spread over a buffer once
  gathered   // strided, broadcast or another dtype: through a buffer for every tile
};

struct Plan {
  ComputeType type;
  TileFn tile;  // null: a copy
  LoopNest nest;
  int64_t count;
  std::array<Access, kMaxNestOperands> access;
  bool streamed;  // the result goes past the caches
};

using Buffer = std::byte[kTileElements * sizeof(double)];

ComputeType choose_type(const KernelCall& call) {
  SmallVector<TypeRef, 4> types;
  for (const Operand& input : call.inputs) types.push_back({&input.shape(), input.dtype, false});
  return elementwise_type(call.output(0).dtype, types);
}

Plan make_plan(const KernelCall& call, ComputeType type, TileFn tile) {
  const Operand& output = call.output(0);
  SmallVector<const Layout*, kMaxNestOperands> layouts;
  for (const Operand& input : call.inputs) layouts.push_back(input.layout);
  layouts.push_back(output.layout);
  Plan plan{.type = type,
            .tile = tile,
            .nest = make_nest(output.shape(), layouts),
            .count = output.count(),
            .access = {},
            .streamed = output.count() * compute_bytes(type) >= kStreamBytes};
  for (int o = 0; o < plan.nest.operands; ++o) {
    const bool is_output = o + 1 == plan.nest.operands;
    const DType dtype = is_output ? output.dtype : call.input(o).dtype;
    Access access = Access::gathered;
    if (dtype == natural_dtype(type) && plan.nest.is_flat(o)) {
      access = Access::direct;
    } else if (!is_output && plan.nest.is_constant(o)) {
      access = Access::constant;
    }
    plan.access[static_cast<size_t>(o)] = access;
  }
  return plan;
}

void gather(const Plan& plan, const Operand& operand, int o, int64_t begin, int64_t count,
            std::byte* out) {
  const int64_t bytes = compute_bytes(plan.type);
  for_each_run(plan.nest, o, begin, count, [&](int64_t position, int64_t run, int64_t stride) {
    load_elements(operand.dtype, operand.base, operand.layout->offset + position, stride, run,
                  plan.type, out);
    out += run * bytes;
  });
}

void scatter(const Plan& plan, const Operand& operand, int o, int64_t begin, int64_t count,
             const std::byte* values) {
  const int64_t bytes = compute_bytes(plan.type);
  for_each_run(plan.nest, o, begin, count, [&](int64_t position, int64_t run, int64_t stride) {
    store_elements(plan.type, values, operand.dtype, operand.base,
                   operand.layout->offset + position, stride, run);
    values += run * bytes;
  });
}

std::byte* direct_address(const Plan& plan, const Operand& operand, int64_t element) {
  return operand.base + (operand.layout->offset + element) * compute_bytes(plan.type);
}

// Brings a tile of the result from where it was computed to where it belongs.
void deliver(const Plan& plan, const Operand& output, int o, int64_t begin, int64_t count,
             const std::byte* values) {
  const int64_t bytes = count * compute_bytes(plan.type);
  if (plan.access[static_cast<size_t>(o)] != Access::direct) {
    scatter(plan, output, o, begin, count, values);
  } else if (plan.streamed) {
    stream_copy(direct_address(plan, output, begin), values, bytes);
  } else {
    std::copy_n(values, bytes, direct_address(plan, output, begin));
  }
}

void run_tile(const KernelCall& call, const Plan& plan, int64_t begin, int64_t count,
              Buffer* buffers) {
  const int inputs = static_cast<int>(call.inputs.size());
  TileCall tile{.inputs = {}, .output = nullptr, .count = count, .attrs = &call.attrs};
  for (int o = 0; o < inputs; ++o) {
    const Access access = plan.access[static_cast<size_t>(o)];
    if (access == Access::gathered) gather(plan, call.input(o), o, begin, count, buffers[o]);
    tile.inputs[o] =
        access == Access::direct ? direct_address(plan, call.input(o), begin) : buffers[o];
  }
  const bool in_place =
      plan.access[static_cast<size_t>(inputs)] == Access::direct && !plan.streamed;
  tile.output = in_place ? direct_address(plan, call.output(0), begin) : buffers[inputs];
  if (plan.tile) plan.tile(tile);
  const void* result = plan.tile ? tile.output : tile.inputs[0];  // of a copy: the input
  if (!in_place || !plan.tile)
    deliver(plan, call.output(0), inputs, begin, count, static_cast<const std::byte*>(result));
}

void run_piece(const KernelCall& call, const Plan& plan, int64_t begin, int64_t end) {
  alignas(64) Buffer buffers[kMaxNestOperands];
  for (int o = 0; o < static_cast<int>(call.inputs.size()); ++o) {
    if (plan.access[static_cast<size_t>(o)] != Access::constant) continue;
    const Operand& input = call.input(o);
    load_elements(input.dtype, input.base, input.layout->offset, 0,
                  std::min(kTileElements, end - begin), plan.type, buffers[o]);
  }
  for (int64_t tile = begin; tile < end; tile += kTileElements) {
    run_tile(call, plan, tile, std::min(kTileElements, end - tile), buffers);
  }
  if (plan.streamed) finish_stream();
}

// The common case without a plan: every operand lies flat, in the compute type, in the result's shape.
// Small tensors are all overhead, and this is a third of it.
bool run_flat(const KernelCall& call, ComputeType type, TileFn tile) {
  const Operand& output = call.output(0);
  const auto is_flat = [&](const Operand& operand) {
    return operand.dtype == natural_dtype(type) && operand.shape() == output.shape() &&
           operand.layout->is_contiguous();
  };
  if (!is_flat(output) || !std::all_of(call.inputs.begin(), call.inputs.end(), is_flat))
    return false;
  const int64_t bytes = compute_bytes(type), count = output.count();
  const auto run_range = [&](int64_t begin, int64_t end, std::byte* into) {
    TileCall part{.inputs = {}, .output = into, .count = end - begin, .attrs = &call.attrs};
    for (size_t o = 0; o < call.inputs.size(); ++o) {
      part.inputs[o] = call.inputs[o].base + (call.inputs[o].layout->offset + begin) * bytes;
    }
    tile(part);
  };
  std::byte* out = output.base + output.layout->offset * bytes;
  if (count <= kPieceElements) {
    run_range(0, count, out);
    return true;
  }
  call.pool.for_each_piece((count + kPieceElements - 1) / kPieceElements, [&](int64_t piece) {
    const int64_t begin = piece * kPieceElements, end = std::min(count, begin + kPieceElements);
    if (count * bytes < kStreamBytes) return run_range(begin, end, out + begin * bytes);
    alignas(64) Buffer buffer;
    for (int64_t first = begin; first < end; first += kTileElements) {
      const int64_t last = std::min(end, first + kTileElements);
      const int64_t next = std::min(kTileElements, end - last) * bytes;
      for (const Operand& input : call.inputs)
        prefetch_bytes(input.base + (input.layout->offset + last) * bytes, next);
      run_range(first, last, buffer);
      stream_copy(out + first * bytes, buffer, (last - first) * bytes);
    }
    finish_stream();
  });
  return true;
}

void run_plan(const KernelCall& call, const Plan& plan) {
  if (plan.count == 0) return;
  // Two threads must not write halves of one byte.
  if (is_packed(call.output(0).dtype)) return run_piece(call, plan, 0, plan.count);
  const int64_t pieces = (plan.count + kPieceElements - 1) / kPieceElements;
  call.pool.for_each_piece(pieces, [&](int64_t piece) {
    const int64_t begin = piece * kPieceElements;
    run_piece(call, plan, begin, std::min(plan.count, begin + kPieceElements));
  });
}

}  // namespace

void run_elementwise(const KernelCall& call) {
  const ComputeType type = choose_type(call);
  const TileFn tile = tile_for(call.op, type);
  if (!run_flat(call, type, tile)) run_plan(call, make_plan(call, type, tile));
}

void run_copy(const KernelCall& call) {
  run_plan(call, make_plan(call, compute_type(call.input(0).dtype), nullptr));
}

}  // namespace brrr::kernels
