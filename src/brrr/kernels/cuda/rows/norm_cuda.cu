// Norms over the last axis, forward; see rows.cuh for who has a row.
#include "brrr/kernels/cuda/device/rows.cuh"
#include "brrr/kernels/cuda/device/rows_plain.cuh"
#include "brrr/kernels/cuda/rows/norm_cuda.h"
#include "brrr/kernels/cuda/rows/norm_rows.cuh"

namespace brrr::kernels {
namespace {

struct NormRows {
  RowStarts x, y;
  NormColumns weight, bias;
  float *means, *inverses;  // means: null for rms_norm
  int64_t rows;
  int chunks;
  float one_over_cols, eps;
};

// Rows of a warp at once, up to 8 chunks a lane: their reductions overlap, and weights are read once for them.
template <typename Row>
constexpr int kAtOnce = !Row::kIsOfWarp || Row::kSteps > 4 ? 1
                        : Row::kSteps > 1                  ? 2
                                                           : 4;

// A warp has kAtOnce rows and is done: blocks that begin and end on their own keep memory busier than some that
// stay with a row ahead. A block has several rows, the next one under way, since all of it waits for its sums.
// Weights are elements W.
template <typename Row, typename W, bool Centered>
__global__ void __launch_bounds__(kRowThreads<Row>) norm_rows_kernel(NormRows call) {
  using T = typename Row::Element;
  constexpr int kRows = kAtOnce<Row>;
  const int chunks = call.chunks;
  typename Row::Team team;
  Row next[kRows];
  const auto load = [&](int64_t first) {
#pragma unroll
    for (int n = 0; n < kRows; ++n)
      if (first + n < call.rows) next[n].load(call.x.of<T>(first + n), chunks);
  };
  const int64_t step = team.count() * kRows;
  int64_t first = team.index() * kRows;
  if (first >= call.rows) return;
  load(first);
  for (; first < call.rows; first += step) {
    float v[kRows][Row::kSteps][kChunk<T>], mean[kRows] = {}, square[kRows] = {}, inverse[kRows];
#pragma unroll
    for (int n = 0; n < kRows; ++n) next[n].unpack(v[n]);
    if constexpr (!Row::kIsOfWarp) {
      if (first + step < call.rows) load(first + step);
    }
    if constexpr (Centered) {  // chunks that are not there are zeros
#pragma unroll
      for (int n = 0; n < kRows; ++n)
#pragma unroll
        for (int s = 0; s < Row::kSteps; ++s)
#pragma unroll
          for (float value : v[n][s]) mean[n] += value;
      team.sum(mean);
#pragma unroll
      for (float& value : mean) value *= call.one_over_cols;
    }
    Row::for_each_chunk(chunks, [&](int s, int) {
#pragma unroll
      for (int n = 0; n < kRows; ++n)
#pragma unroll
        for (float& value : v[n][s]) {
          value -= mean[n];
          square[n] = fmaf(value, value, square[n]);
        }
    });
    team.sum(square);
#pragma unroll
    for (int n = 0; n < kRows; ++n)
      inverse[n] = inverse_root(fmaf(square[n], call.one_over_cols, call.eps));
    Row::for_each_chunk(chunks, [&](int s, int chunk) {
      float gain[kChunk<T>], shift[kChunk<T>];
      call.weight.read<T, W>(chunk, gain);
      if constexpr (Centered) call.bias.read<T, W>(chunk, shift);
#pragma unroll
      for (int n = 0; n < kRows; ++n) {
#pragma unroll
        for (int i = 0; i < kChunk<T>; ++i) {
          const float x_hat = v[n][s][i] * inverse[n];
          v[n][s][i] = Centered ? fmaf(x_hat, gain[i], shift[i]) : x_hat * gain[i];
        }
        if (first + n < call.rows) call.y.of<T>(first + n)[chunk] = pack_chunk<T>(v[n][s]);
      }
    });
#pragma unroll
    for (int n = 0; n < kRows; ++n) {
      if (team.rank() != 0 || first + n >= call.rows) continue;
      if constexpr (Centered) call.means[first + n] = mean[n];
      call.inverses[first + n] = inverse[n];
    }
    if constexpr (Row::kIsOfWarp) break;
  }
}

template <typename C, bool Centered>
__global__ void norm_plain_kernel(RowsOf x, NormColumns weight, NormColumns bias, RowsOf y,
                                  Elements means, Elements inverses, int64_t rows, int64_t cols,
                                  double eps) {
  BlockTeam team;
  for (int64_t r = team.index(); r < rows; r += team.count()) {
    const PlainRow<C> from(x, r, cols), to(y, r, cols);
    C mean = 0, square = 0;
    if constexpr (Centered) {
      from.for_each_column([&](int64_t col) { mean += from.at(col); });
      mean = team.sum(mean) / static_cast<C>(cols);
    }
    from.for_each_column([&](int64_t col) {
      const C v = from.at(col) - mean;
      square += v * v;
    });
    const C inverse = C(1) / sqrt(team.sum(square) / static_cast<C>(cols) + static_cast<C>(eps));
    from.for_each_column([&](int64_t col) {
      const C scaled = (from.at(col) - mean) * inverse * weight.at<C>(col);
      to.set(col, Centered ? scaled + bias.at<C>(col) : scaled);
    });
    if (team.rank() == 0) {
      if (Centered) means.store<C>(r, mean);
      inverses.store<C>(r, inverse);
    }
  }
}

template <typename T>
constexpr int64_t kMostChunks = sizeof(T) == 2 ? 1024 : 4096;  // of a row in 64 registers a thread

// False where rows are too long.
template <typename T, typename W, bool Centered>
bool launch_rows(const CudaCall& call, const NormRows& rows_call) {
  const int64_t cols = call.input(0).shape().back();
  return visit_cached_rows<T, kMostChunks<T>>(cols, [&]<typename Row>(const RowLaunch& launch) {
    const auto kernel = norm_rows_kernel<Row, W, Centered>;
    const unsigned blocks = Row::kIsOfWarp ? all_blocks(launch, rows_call.rows, kAtOnce<Row>)
                                           : resident_blocks(kernel, launch, 0, rows_call.rows);
    kernel<<<blocks, launch.threads, 0, call.stream>>>(rows_call);
  });
}

// False where rows or weights are not whole chunks, the weights neither f32 nor as the rows are, or rows too long.
template <bool Centered>
bool run_norm_rows(const CudaCall& call, NormRows rows_call) {
  const Operand &x = call.input(0), &y = call.output(0);
  const std::optional<RowStarts> from = row_starts(x), to = row_starts(y);
  if (!from || !to) return false;
  rows_call.x = *from, rows_call.y = *to;
  return visit_chunked_dtype(x.dtype, [&]<typename T>() {
    rows_call.chunks = static_cast<int>(x.shape().back() / kChunk<T>);
    const auto are = [&]<typename W>() {
      return rows_call.weight.has_chunks_of<W>() && rows_call.bias.has_chunks_of<W>();
    };
    if (are.template operator()<float>()) return launch_rows<T, float, Centered>(call, rows_call);
    return are.template operator()<T>() && launch_rows<T, T, Centered>(call, rows_call);
  });
}

template <bool Centered>
void run_norm(const CudaCall& call) {
  const Operand &x = call.input(0), &y = call.output(0), &inverse = call.output(Centered ? 2 : 1);
  const int64_t cols = x.shape().back(), rows = norm_row_count(x);
  if (rows == 0) return;
  const NormColumns weight(call.input(1)), bias(call.input(Centered ? 2 : 1));
  const double eps = call.attrs.number("eps");
  const NormRows rows_call{.x = {},
                           .y = {},
                           .weight = weight,
                           .bias = bias,
                           .means = Elements(call.output(1)).as<float>(),
                           .inverses = Elements(inverse).as<float>(),
                           .rows = rows,
                           .chunks = 0,
                           .one_over_cols = 1 / static_cast<float>(cols),
                           .eps = static_cast<float>(eps)};
  if (!run_norm_rows<Centered>(call, rows_call)) {
    visit_plain(x.dtype, [&]<typename C>() {
      norm_plain_kernel<C, Centered>
          <<<blocks_for(rows, 1), plain_row_threads(cols), 0, call.stream>>>(
              RowsOf(x), weight, bias, RowsOf(y), Elements(call.output(1)), Elements(inverse), rows,
              cols, eps);
    });
  }
  cuda::check_launch(call.op.name);
}

}  // namespace

void layer_norm_cuda(const CudaCall& call) { run_norm<true>(call); }
void rms_norm_cuda(const CudaCall& call) { run_norm<false>(call); }

}  // namespace brrr::kernels
