// Cross-entropy and its gradient. Rows are long (a vocabulary), so a block has one: forward reads it once with a
// running maximum and sum a thread, backward reads and writes it once. Rows of whole chunks go 16 bytes at a
// time; others, and those with capped logits, element by element.
#include "brrr/kernels/cuda/rows/cross_entropy_rows.cuh"
#include "brrr/kernels/cuda/rows/softmax_cuda.h"

namespace brrr::kernels {
namespace {

struct BackwardNumbers {  // one number a row each
  Elements total, dloss, dtotal;
  int64_t total_stride, dloss_stride, dtotal_stride;
  bool has_dtotal;

  template <typename C>
  __device__ RowGradient<C> of(int64_t row, const EntropyRule& rule) const {
    return {rule, total.load<C>(row * total_stride), dloss.load<C>(row * dloss_stride),
            has_dtotal ? dtotal.load<C>(row * dtotal_stride) : C(0)};
  }
};

// ---- Rows of whole chunks.

// Four blocks of 256 threads a multiprocessor, each thread with 5 chunks under way: a row is then ten tiles or fewer,
// and while some blocks join their sums others read.
constexpr int kForwardThreads = 256, kForwardSteps = 5;

template <typename T>
__global__ void __launch_bounds__(kForwardThreads, 4)
    cross_entropy_rows_kernel(RowStarts logits, int chunks, Targets targets, Elements loss,
                              Elements total, int64_t rows, EntropyRule rule) {
  BlockTeam team;
  for (int64_t r = team.index(); r < rows; r += team.count()) {
    const int64_t target = targets.of(r, rule);
    if (target < 0) {  // the same for all threads of the block
      if (threadIdx.x == 0) loss.store<float>(r, 0), total.store<float>(r, 0);
      continue;
    }
    const uint4* const from = logits.of<T>(r);
    const auto totals = ChunkedTotals<T>::template of<kForwardSteps>(from, chunks, rule, team);
    if (threadIdx.x != 0) continue;
    const auto chosen = convert_fast<float>(reinterpret_cast<const T*>(from)[target]);
    loss.store<float>(r, loss_of(rule, totals.log_total, chosen, totals.mean_logit));
    total.store<float>(r, totals.log_total);
  }
}

constexpr int kBackwardSteps = 4;

template <typename T>
__global__ void __launch_bounds__(kTileThreads)
    cross_entropy_backward_rows_kernel(RowStarts logits, RowStarts grad, int chunks,
                                       Targets targets, BackwardNumbers numbers, int64_t rows,
                                       EntropyRule rule) {
  using Tile = RowTile<T, kBackwardSteps>;
  const int classes = static_cast<int>(rule.classes);
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const int target = static_cast<int>(targets.of(r, rule));
    const RowGradient<float> row = numbers.of<float>(r, rule);
    uint4* const to = grad.of<T>(r);
    if (target < 0) {
      for (int chunk = static_cast<int>(threadIdx.x); chunk < chunks; chunk += BlockTeam::size())
        to[chunk] = uint4{0, 0, 0, 0};
      continue;
    }
    for_each_tile<T, kBackwardSteps>(logits.of<T>(r), chunks, [&](const Tile& tile, int first) {
      float v[Tile::kSteps][kChunk<T>];
      tile.unpack(v);
      Tile::for_each_chunk(chunks - first, [&](int s, int chunk) {
        row.apply<T>(v[s], (first + chunk) * kChunk<T>, target, classes);
        to[first + chunk] = pack_chunk<T>(v[s]);
      });
    });
  }
}

// ---- Other rows.

template <typename C>
__global__ void cross_entropy_plain_kernel(RowsOf logits, Targets targets, Elements loss,
                                           Elements total, int64_t rows, EntropyRule rule) {
  const C cap = static_cast<C>(rule.soft_cap);
  BlockTeam team;
  for (int64_t r = team.index(); r < rows; r += team.count()) {
    const int64_t target = targets.of(r, rule);
    if (target < 0) {  // the same for all threads of the block
      if (threadIdx.x == 0) loss.store<C>(r, 0), total.store<C>(r, 0);
      continue;
    }
    const PlainRow<C> row(logits, r, rule.classes);
    const PlainTotals<C> totals(row, rule, team);
    if (threadIdx.x != 0) continue;
    loss.store<C>(r,
                  loss_of(rule, totals.log_total, capped(row.at(target), cap), totals.mean_logit));
    total.store<C>(r, totals.log_total);
  }
}

template <typename C>
__global__ void cross_entropy_backward_plain_kernel(RowsOf logits, RowsOf grad, Targets targets,
                                                    BackwardNumbers numbers, int64_t rows,
                                                    int64_t cols, EntropyRule rule) {
  const C cap = static_cast<C>(rule.soft_cap);
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const int64_t target = targets.of(r, rule);
    const RowGradient<C> row = numbers.of<C>(r, rule);
    const PlainRow<C> from(logits, r, cols), to(grad, r, cols);
    from.for_each_column([&](int64_t col) {
      to.set(col, target < 0 || col >= rule.classes
                      ? C(0)
                      : row.of_element(from.at(col), cap, col == target));
    });
  }
}

}  // namespace

void cross_entropy_cuda(const CudaCall& call) {
  const Operand &logits = call.input(0), &targets = call.input(1);
  const int64_t rows = logits.shape()[0], cols = logits.shape()[1];
  if (rows == 0) return;
  const EntropyRule rule(options_of(call.attrs), cols);
  const Targets of_rows{Elements(targets), targets.layout->strides[0], fault_note(call)};
  const Elements loss(call.output(0)), total(call.output(1));
  const std::optional<RowStarts> from = row_starts(logits);
  const bool ran =
      from && is_for_chunks(call, cols) && visit_chunked_dtype(logits.dtype, [&]<typename T>() {
        const int64_t chunks = cols / kChunk<T>;
        const int threads = tile_threads(chunks, kForwardSteps, kForwardThreads);
        cross_entropy_rows_kernel<T><<<blocks_for(rows, 1), threads, 0, call.stream>>>(
            *from, static_cast<int>(chunks), of_rows, loss, total, rows, rule);
        return true;
      });
  if (!ran) {
    visit_plain(logits.dtype, [&]<typename C>() {
      cross_entropy_plain_kernel<C>
          <<<blocks_for(rows, 1), plain_row_threads(cols), 0, call.stream>>>(
              RowsOf(logits), of_rows, loss, total, rows, rule);
    });
  }
  cuda::check_launch(call.op.name);
}

void cross_entropy_backward_cuda(const CudaCall& call) {
  const Operand &logits = call.input(0), &targets = call.input(1), &grad = call.output(0);
  const int64_t rows = logits.shape()[0], cols = logits.shape()[1];
  if (rows == 0) return;
  const bool has_dtotal = call.inputs.size() > 4;
  const Operand &total = call.input(2), &dloss = call.input(3),
                &dtotal = call.input(has_dtotal ? 4 : 3);
  const EntropyRule rule(options_of(call.attrs), cols);
  const Targets of_rows{Elements(targets), targets.layout->strides[0], fault_note(call)};
  const BackwardNumbers numbers{.total = Elements(total),
                                .dloss = Elements(dloss),
                                .dtotal = Elements(dtotal),
                                .total_stride = total.layout->strides[0],
                                .dloss_stride = dloss.layout->strides[0],
                                .dtotal_stride = dtotal.layout->strides[0],
                                .has_dtotal = has_dtotal};
  const std::optional<RowStarts> from = row_starts(logits), to = row_starts(grad);
  const bool ran =
      from && to && is_for_chunks(call, cols) &&
      visit_chunked_dtype(logits.dtype, [&]<typename T>() {
        const int64_t chunks = cols / kChunk<T>;
        const int threads = tile_threads(chunks, kBackwardSteps, kTileThreads);
        cross_entropy_backward_rows_kernel<T><<<blocks_for(rows, 1), threads, 0, call.stream>>>(
            *from, *to, static_cast<int>(chunks), of_rows, numbers, rows, rule);
        return true;
      });
  if (!ran) {
    visit_plain(logits.dtype, [&]<typename C>() {
      cross_entropy_backward_plain_kernel<C>
          <<<blocks_for(rows, 1), plain_row_threads(cols), 0, call.stream>>>(
              RowsOf(logits), RowsOf(grad), of_rows, numbers, rows, cols, rule);
    });
  }
  cuda::check_launch(call.op.name);
}

}  // namespace brrr::kernels
