// Every reduction has two phases: each tile of each output is reduced to one wide value, then the
// values of an output are combined in order. Where the reduced axis is contiguous a tile is a piece
// of a row; where the kept axis is, a tile is a block of columns walked row by row.
#include "brrr/kernels/cpu/reduce/reduce_cpu.h"

#include <functional>

#include "brrr/kernels/calls/kernel_layouts.h"
#include "brrr/kernels/cpu/elementwise/convert_cpu.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"
#include "brrr/kernels/cpu/reduce/reduce_tiles.h"

namespace brrr::kernels {
namespace {

constexpr int64_t kCachedBytes = 2 << 20;  // an operand of this size is in the L2 cache
constexpr int64_t kColumnBlock = 128;      // x 32 lanes x 4 bytes = 16 KiB, half an L1 cache

struct ReducePlan {
  Operand input, output;
  ComputeType type;
  ReduceKernels kernels;
  LoopNest kept, reduced;   // one operand each: the input
  int64_t outputs, length;  // elements of the result, and reduced into each
  int64_t tiles;            // of kTileElements along `length`
  std::byte* partials;      // [tiles][outputs] wide values
  bool scale_by_length;     // mean
};

LoopNest nest_of(const Layout& layout) {
  const Layout* operand = &layout;
  return make_nest(layout.shape, {&operand, 1});
}

int64_t inner_stride(const LoopNest& nest) {
  return nest.rank == 0 ? INT64_MAX : nest.strides[0][static_cast<size_t>(nest.rank - 1)];
}

int64_t tiles_of(int64_t length) {
  return std::max<int64_t>(1, (length + kTileElements - 1) / kTileElements);
}

std::byte* partial_address(const ReducePlan& plan, int64_t tile, int64_t output) {
  return plan.partials + (tile * plan.outputs + output) * 8;
}

// Position in storage of output element `output`, at the first reduced element.
int64_t output_position(const ReducePlan& plan, int64_t output) {
  if (plan.kept.rank <= 1) {
    const int64_t stride = plan.kept.rank == 0 ? 0 : plan.kept.strides[0][0];
    return plan.input.layout->offset + output * stride;
  }
  int64_t start = 0;
  for_each_run(plan.kept, 0, output, 1,
               [&](int64_t position, int64_t, int64_t) { start = position; });
  return plan.input.layout->offset + start;
}

// Elements of the input from `position` on. A computed operand is contiguous, so positions are its
// logical order.
void load_run(const Operand& input, int64_t position, int64_t stride, int64_t count,
              ComputeType type, void* out) {
  if (!input.source) {
    load_elements(input.dtype, input.base, position, stride, count, type, out);
  } else if (stride == 1) {
    input.source->read(position, count, type, out);
  } else {
    for (int64_t i = 0; i < count; ++i)
      input.source->read(position + i * stride, 1, type,
                         static_cast<std::byte*>(out) + i * compute_bytes(type));
  }
}

bool is_direct(const Operand& input) { return is_natural(input.dtype) && !input.source; }

void reduce_row_tile(const ReducePlan& plan, int64_t output, int64_t tile) {
  alignas(64) std::byte buffer[kTileElements * 8];
  const int64_t begin = tile * kTileElements, count = std::min(kTileElements, plan.length - begin);
  const int64_t start = output_position(plan, output), bytes = compute_bytes(plan.type);
  const void* values = buffer;
  if (is_direct(plan.input) && plan.reduced.is_flat(0)) {
    values = plan.input.base + (start + begin) * bytes;
  } else {
    std::byte* out = buffer;
    for_each_run(plan.reduced, 0, begin, count, [&](int64_t position, int64_t run, int64_t stride) {
      load_run(plan.input, start + position, stride, run, plan.type, out);
      out += run * bytes;
    });
  }
  plan.kernels.row(values, count, partial_address(plan, tile, output));
}

void reduce_rows(const ReducePlan& plan, ThreadPool& pool) {
  const int64_t units = plan.outputs * plan.tiles;
  const int64_t unit_elements = std::min(plan.length, kTileElements);
  const int64_t units_a_piece =
      std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, unit_elements));
  pool.for_each_piece((units + units_a_piece - 1) / units_a_piece, [&](int64_t piece) {
    const int64_t end = std::min(units, (piece + 1) * units_a_piece);
    for (int64_t unit = piece * units_a_piece; unit < end; ++unit) {
      reduce_row_tile(plan, unit / plan.tiles, unit % plan.tiles);
    }
  });
}

// Columns [first, first + columns) of the outputs, which lie along the innermost kept axis.
void reduce_column_tile(const ReducePlan& plan, int64_t first, int64_t columns, int64_t tile) {
  alignas(64) std::byte lanes[kReduceLanes * kColumnBlock * 8];
  alignas(64) std::byte buffer[kColumnBlock * 8];
  const int64_t bytes = compute_bytes(plan.type), stride = inner_stride(plan.kept);
  const int64_t start = output_position(plan, first);
  const int64_t begin = tile * kTileElements, count = std::min(kTileElements, plan.length - begin);
  const bool direct = is_direct(plan.input) && stride == 1;
  if (direct && plan.reduced.rank == 1 && plan.outputs * plan.length * bytes <= kCachedBytes) {
    const int64_t row_stride = plan.reduced.strides[0][0];
    plan.kernels.fill_lanes(lanes, plan.input.base + (start + begin * row_stride) * bytes,
                            row_stride, count, columns);
    plan.kernels.finish_lanes(lanes, columns, partial_address(plan, tile, first));
    return;
  }
  plan.kernels.start_lanes(lanes, columns);
  int64_t row = 0;
  for_each_run(
      plan.reduced, 0, begin, count, [&](int64_t position, int64_t run, int64_t row_stride) {
        for (int64_t r = 0; r < run; ++r, ++row) {
          const int64_t element = start + position + r * row_stride;
          const void* values = buffer;
          if (direct) {
            values = plan.input.base + element * bytes;
          } else {
            load_run(plan.input, element, stride, columns, plan.type, buffer);
          }
          plan.kernels.add_to_lane(lanes + (row % kReduceLanes) * columns * bytes, values, columns);
        }
      });
  plan.kernels.finish_lanes(lanes, columns, partial_address(plan, tile, first));
}

void reduce_columns(const ReducePlan& plan, ThreadPool& pool) {
  const int64_t inner = plan.kept.inner_size();
  const int64_t blocks_a_row = (inner + kColumnBlock - 1) / kColumnBlock;
  const int64_t blocks = plan.outputs / inner * blocks_a_row;
  pool.for_each_piece(blocks * plan.tiles, [&](int64_t unit) {
    const int64_t block = unit / plan.tiles;
    const int64_t column = block % blocks_a_row * kColumnBlock;
    reduce_column_tile(plan, block / blocks_a_row * inner + column,
                       std::min(kColumnBlock, inner - column), unit % plan.tiles);
  });
}

// Combines the tiles of each output in order, and writes the results in the output's dtype.
void finish_outputs(const ReducePlan& plan, ThreadPool& pool) {
  const ComputeType wide = is_integer(plan.type) ? plan.type : ComputeType::f64;
  pool.for_each_piece((plan.outputs + kTileElements - 1) / kTileElements, [&](int64_t piece) {
    const int64_t first = piece * kTileElements,
                  count = std::min(kTileElements, plan.outputs - first);
    std::byte* total = partial_address(plan, 0, first);
    for (int64_t tile = 1; tile < plan.tiles; ++tile) {
      plan.kernels.combine(total, partial_address(plan, tile, first), count);
    }
    if (plan.scale_by_length) {
      auto* values = reinterpret_cast<double*>(total);
      for (int64_t i = 0; i < count; ++i) values[i] /= static_cast<double>(plan.length);
    }
    store_elements(wide, total, plan.output.dtype, plan.output.base,
                   plan.output.layout->offset + first, 1, count);
  });
}

ReducePlan make_plan(const KernelCall& call, Reduction reduction) {
  const Operand& input = call.input(0);
  const Axes& axes = call.attrs.list("axes");
  const Layout kept = pick_axes(*input.layout, axes, false),
               reduced = pick_axes(*input.layout, axes, true);
  const ComputeType type = compute_type(input.dtype);
  const int64_t length = numel(reduced.shape);
  return {.input = input,
          .output = call.output(0),
          .type = type,
          .kernels = find_reduce_kernels(reduction, type),
          .kept = nest_of(kept),
          .reduced = nest_of(reduced),
          .outputs = numel(kept.shape),
          .length = length,
          .tiles = tiles_of(length),
          .partials = call.workspace.data(),
          .scale_by_length = false};
}

void run_plan(const ReducePlan& plan, ThreadPool& pool) {
  if (plan.outputs == 0) return;
  const bool columns_contiguous =
      plan.outputs > 1 && inner_stride(plan.kept) < inner_stride(plan.reduced);
  if (columns_contiguous && plan.length > 1) {
    reduce_columns(plan, pool);
  } else {
    reduce_rows(plan, pool);
  }
  finish_outputs(plan, pool);
}

// The place of the value that beats the others (> or <), the first of equals; NaN beats all.
template <typename Beats, typename T>
void find_winner(const T* values, int64_t count, int64_t base, T& best, int64_t& place) {
  for (int64_t i = 0; i < count; ++i) {
    const bool first = place < 0, best_is_nan = best != best;
    if (first || (!best_is_nan && (Beats()(values[i], best) || values[i] != values[i]))) {
      best = values[i];
      place = base + i;
    }
  }
}

template <typename Beats, typename T>
int64_t winner_of_row(const ReducePlan& plan, int64_t output) {
  T buffer[kTileElements];
  const int64_t start = output_position(plan, output);
  T best{};
  int64_t place = -1;
  for (int64_t begin = 0; begin < plan.length; begin += kTileElements) {
    const int64_t count = std::min(kTileElements, plan.length - begin);
    T* out = buffer;
    for_each_run(plan.reduced, 0, begin, count, [&](int64_t position, int64_t run, int64_t stride) {
      load_elements(plan.input.dtype, plan.input.base, start + position, stride, run, plan.type,
                    out);
      out += run;
    });
    find_winner<Beats>(buffer, count, begin, best, place);
  }
  return place;
}

template <typename Beats>
void find_places(const KernelCall& call) {
  const ReducePlan plan = make_plan(call, Reduction::max);
  const int64_t rows_a_piece =
      std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, plan.length));
  auto* places = call.output(0).data<int64_t>();
  call.pool.for_each_piece((plan.outputs + rows_a_piece - 1) / rows_a_piece, [&](int64_t piece) {
    const int64_t end = std::min(plan.outputs, (piece + 1) * rows_a_piece);
    for (int64_t output = piece * rows_a_piece; output < end; ++output) {
      places[output] = visit_compute(
          plan.type, [&]<typename T>() { return winner_of_row<Beats, T>(plan, output); });
    }
  });
}

}  // namespace

void sum_cpu(const KernelCall& call) { run_plan(make_plan(call, Reduction::sum), call.pool); }

void mean_cpu(const KernelCall& call) {
  ReducePlan plan = make_plan(call, Reduction::sum);
  plan.scale_by_length = true;
  run_plan(plan, call.pool);
}

void max_cpu(const KernelCall& call) { run_plan(make_plan(call, Reduction::max), call.pool); }
void min_cpu(const KernelCall& call) { run_plan(make_plan(call, Reduction::min), call.pool); }
void prod_cpu(const KernelCall& call) { run_plan(make_plan(call, Reduction::prod), call.pool); }
void argmax_cpu(const KernelCall& call) { find_places<std::greater<>>(call); }
void argmin_cpu(const KernelCall& call) { find_places<std::less<>>(call); }

int64_t reduce_workspace(const KernelCall& call) {
  int64_t length = 1;
  for (int64_t axis : call.attrs.list("axes"))
    length *= call.input(0).shape()[static_cast<int>(axis)];
  return call.output(0).count() * tiles_of(length) * 8;
}

}  // namespace brrr::kernels
