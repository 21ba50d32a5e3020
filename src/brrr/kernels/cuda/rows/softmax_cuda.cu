// Softmax, log_softmax and their gradients. A row that registers or shared memory hold is read once (rows.cuh); a
// longer one twice, the second time mostly from the cache; rows that are not whole chunks element by element.
#include "brrr/kernels/cuda/device/rows_plain.cuh"
#include "brrr/kernels/cuda/rows/softmax_cuda.h"
#include "brrr/kernels/cuda/rows/softmax_long.cuh"

namespace brrr::kernels {
namespace {

// Rows that a team has at once. A warp, or a block of up to 256 threads, has them and is done: blocks that begin and
// end on their own keep memory busier than some that stay with a row ahead. Few larger blocks fit at once, so those
// stay (kStays).
constexpr int kOnceThreads = 256;
template <typename Row>
constexpr int kAtOnce = Row::kIsOfWarp ? (Row::kSteps == 1   ? 4
                                          : Row::kSteps == 2 ? 2
                                                             : 1)
                                       : 2;

template <typename Row, bool Stays, bool Logarithm>
__global__ void __launch_bounds__(Row::kIsOfWarp || Stays ? kRowThreads<Row> : kOnceThreads)
    softmax_rows_kernel(SoftmaxRowsCall call) {
  using T = typename Row::Element;
  constexpr int kRows = Stays ? 1 : kAtOnce<Row>;
  const int chunks = call.chunks;
  typename Row::Team team;
  Row next[kRows];
  const auto load = [&](int64_t first) {
#pragma unroll
    for (int n = 0; n < kRows; ++n)
      if (first + n < call.rows) next[n].load(call.a.of<T>(first + n), chunks);
  };
  const int64_t step = team.count() * kRows;
  int64_t first = team.index() * kRows;
  if (first < call.rows) load(first);
  for (; first < call.rows; first += step) {
    float v[kRows][Row::kSteps][kChunk<T>], largest[kRows], total[kRows] = {};
#pragma unroll
    for (int n = 0; n < kRows; ++n) {
      next[n].unpack(v[n]);
      largest[n] = kLowest;
    }
    if (Stays && first + step < call.rows) load(first + step);
    Row::for_each_chunk(chunks, [&](int s, int) {
#pragma unroll
      for (int n = 0; n < kRows; ++n)
#pragma unroll
        for (float value : v[n][s]) largest[n] = larger(largest[n], value);
    });
    team.max(largest);
    Row::for_each_chunk(chunks, [&](int s, int) {
#pragma unroll
      for (int n = 0; n < kRows; ++n)
#pragma unroll
        for (float& value : v[n][s]) {
          value -= largest[n];
          const float e = exp_of<T>(value);
          total[n] += e;
          if (!Logarithm) value = e;
        }
    });
    team.sum(total);
#pragma unroll
    for (int n = 0; n < kRows; ++n) {
      if (first + n >= call.rows) continue;
      const float last = Logarithm ? logf(total[n]) : 1 / total[n];
#pragma unroll
      for (int s = 0; s < Row::kSteps; ++s)
#pragma unroll
        for (float& value : v[n][s]) value = Logarithm ? value - last : value * last;
      Row::store(call.b.of<T>(first + n), chunks, v[n]);
    }
    if constexpr (!Stays) break;
  }
}

// softmax: dx = y (dy - sum(dy y));  log_softmax: dx = dy - exp(y) sum(dy)
template <typename T, bool Logarithm>
__device__ float gradient(float y, float dy, float sum) {
  return Logarithm ? fmaf(-exp_of<T>(y), sum, dy) : y * (dy - sum);
}

template <typename Row, bool Logarithm>
__global__ void __launch_bounds__(kRowThreads<Row>)
    softmax_backward_rows_kernel(SoftmaxRowsCall call) {
  using T = typename Row::Element;
  const int chunks = call.chunks;
  typename Row::Team team;
  Row next_y, next_dy;
  const auto load = [&](int64_t row) {
    next_y.load(call.a.of<T>(row), chunks);
    next_dy.load(call.b.of<T>(row), chunks);
  };
  int64_t r = team.index();
  if (r < call.rows) load(r);
  for (; r < call.rows; r += team.count()) {
    float y[Row::kSteps][kChunk<T>], dy[Row::kSteps][kChunk<T>];
    next_y.unpack(y);
    next_dy.unpack(dy);
    if (r + team.count() < call.rows) load(r + team.count());
    float sum = 0;  // chunks that are not there are zeros
#pragma unroll
    for (int s = 0; s < Row::kSteps; ++s)
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i)
        sum = Logarithm ? sum + dy[s][i] : fmaf(dy[s][i], y[s][i], sum);
    sum = team.sum(sum);
#pragma unroll
    for (int s = 0; s < Row::kSteps; ++s)
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i) y[s][i] = gradient<T, Logarithm>(y[s][i], dy[s][i], sum);
    Row::store(call.c.of<T>(r), chunks, y);
  }
}

template <typename T, bool Logarithm>
__global__ void __launch_bounds__(kTileThreads) softmax_backward_long_kernel(SoftmaxRowsCall call) {
  using Tile = CachedRow<T, 2, BlockTeam>;  // of y and of dy
  BlockTeam team;
  for (int64_t r = team.index(); r < call.rows; r += team.count()) {
    const uint4 *const y_from = call.a.of<T>(r), *const dy_from = call.b.of<T>(r);
    uint4* const to = call.c.of<T>(r);
    const auto for_each = [&](const auto& visit) {
      for (int first = 0; first < call.chunks; first += Tile::kSteps * BlockTeam::size()) {
        Tile y_tile, dy_tile;
        y_tile.load(y_from + first, call.chunks - first);
        dy_tile.load(dy_from + first, call.chunks - first);
        float y[Tile::kSteps][kChunk<T>], dy[Tile::kSteps][kChunk<T>];
        y_tile.unpack(y);
        dy_tile.unpack(dy);
        Tile::for_each_chunk(call.chunks - first,
                             [&](int s, int chunk) { visit(y[s], dy[s], first + chunk); });
      }
    };
    float sum = 0;
    for_each([&](float(&y)[kChunk<T>], float(&dy)[kChunk<T>], int) {
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i) sum = Logarithm ? sum + dy[i] : fmaf(dy[i], y[i], sum);
    });
    sum = team.sum(sum);
    for_each([&](float(&y)[kChunk<T>], float(&dy)[kChunk<T>], int chunk) {
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i) y[i] = gradient<T, Logarithm>(y[i], dy[i], sum);
      to[chunk] = pack_chunk<T>(y);
    });
  }
}

template <typename C, bool Logarithm>
__global__ void softmax_plain_kernel(RowsOf x, RowsOf y, int64_t rows, int64_t cols) {
  BlockTeam team;
  for (int64_t r = team.index(); r < rows; r += team.count()) {
    const PlainRow<C> from(x, r, cols), to(y, r, cols);
    C largest = -std::numeric_limits<C>::infinity(), total = 0;
    from.for_each_column([&](int64_t col) { largest = larger(largest, from.at(col)); });
    largest = team.max(largest);
    from.for_each_column([&](int64_t col) { total += exp(from.at(col) - largest); });
    total = team.sum(total);
    const C log_total = log(total);
    from.for_each_column([&](int64_t col) {
      const C v = from.at(col) - largest;
      to.set(col, Logarithm ? v - log_total : exp(v) / total);
    });
  }
}

template <typename C, bool Logarithm>
__global__ void softmax_backward_plain_kernel(RowsOf y, RowsOf dy, RowsOf dx, int64_t rows,
                                              int64_t cols) {
  BlockTeam team;
  for (int64_t r = team.index(); r < rows; r += team.count()) {
    const PlainRow<C> result(y, r, cols), grad(dy, r, cols), to(dx, r, cols);
    C sum = 0;
    result.for_each_column(
        [&](int64_t col) { sum += Logarithm ? grad.at(col) : grad.at(col) * result.at(col); });
    sum = team.sum(sum);
    result.for_each_column([&](int64_t col) {
      const C v = result.at(col), g = grad.at(col);
      to.set(col, Logarithm ? g - exp(v) * sum : v * (g - sum));
    });
  }
}

// Rows in registers. Backward holds two of them.
constexpr int64_t kMostChunks = 1024;
template <bool Logarithm>
void run_softmax(const CudaCall& call) {
  const Operand &x = call.input(0), &y = call.output(0);
  if (y.count() == 0) return;
  const int64_t cols = y.shape().back(), rows = y.count() / cols;
  const std::optional<RowStarts> from = row_starts(x), to = row_starts(y);
  const bool ran =
      from && to && visit_chunked_dtype(x.dtype, [&]<typename T>() {
        const SoftmaxRowsCall rows_call{*from, *to, {}, rows, static_cast<int>(cols / kChunk<T>)};
        const bool fits = visit_cached_rows<T, kMostChunks>(cols, [&]<typename Row>(
                                                                      const RowLaunch& launch) {
          if (Row::kIsOfWarp || launch.threads <= kOnceThreads) {
            softmax_rows_kernel<Row, false, Logarithm>
                <<<all_blocks(launch, rows, kAtOnce<Row>), launch.threads, 0, call.stream>>>(
                    rows_call);
          } else if constexpr (!Row::kIsOfWarp) {
            const auto kernel = softmax_rows_kernel<Row, true, Logarithm>;
            kernel<<<resident_blocks(kernel, launch, 0, rows), launch.threads, 0, call.stream>>>(
                rows_call);
          }
        });
        if (!fits) run_long_rows<T, Logarithm>(call, rows_call);
        return true;
      });
  if (!ran) {
    visit_plain(x.dtype, [&]<typename C>() {
      softmax_plain_kernel<C, Logarithm>
          <<<blocks_for(rows, 1), plain_row_threads(cols), 0, call.stream>>>(RowsOf(x), RowsOf(y),
                                                                             rows, cols);
    });
  }
  cuda::check_launch(call.op.name);
}

template <bool Logarithm>
void run_softmax_backward(const CudaCall& call) {
  const Operand &y = call.input(0), &dy = call.input(1), &dx = call.output(0);
  if (dx.count() == 0) return;
  const int64_t cols = dx.shape().back(), rows = dx.count() / cols;
  const std::optional<RowStarts> a = row_starts(y), b = row_starts(dy), c = row_starts(dx);
  const bool ran =
      a && b && c && visit_chunked_dtype(y.dtype, [&]<typename T>() {
        const SoftmaxRowsCall rows_call{*a, *b, *c, rows, static_cast<int>(cols / kChunk<T>)};
        const bool fits =
            visit_cached_rows<T, kMostChunks>(cols, [&]<typename Row>(const RowLaunch& launch) {
              const auto kernel = softmax_backward_rows_kernel<Row, Logarithm>;
              kernel<<<resident_blocks(kernel, launch, 0, rows), launch.threads, 0, call.stream>>>(
                  rows_call);
            });
        if (!fits)
          softmax_backward_long_kernel<T, Logarithm>
              <<<static_cast<unsigned>(long_row_blocks(rows, call.chip)), kTileThreads, 0,
                 call.stream>>>(rows_call);
        return true;
      });
  if (!ran) {
    visit_plain(y.dtype, [&]<typename C>() {
      softmax_backward_plain_kernel<C, Logarithm>
          <<<blocks_for(rows, 1), plain_row_threads(cols), 0, call.stream>>>(
              RowsOf(y), RowsOf(dy), RowsOf(dx), rows, cols);
    });
  }
  cuda::check_launch(call.op.name);
}

}  // namespace

void softmax_cuda(const CudaCall& call) { run_softmax<false>(call); }
void log_softmax_cuda(const CudaCall& call) { run_softmax<true>(call); }
void softmax_backward_cuda(const CudaCall& call) { run_softmax_backward<false>(call); }
void log_softmax_backward_cuda(const CudaCall& call) { run_softmax_backward<true>(call); }

}  // namespace brrr::kernels
