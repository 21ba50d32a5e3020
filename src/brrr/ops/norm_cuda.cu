// Norms over the last axis, forward; see rows.cuh for who has a row.
#include "brrr/ops/norm_cuda.h"
#include "brrr/ops/norm_rows.cuh"
#include "brrr/ops/rows.cuh"
#include "brrr/ops/rows_plain.cuh"

namespace brrr {
namespace {

struct NormRows {
  RowStarts x, y;
  NormColumns weight, bias;
  float *means, *inverses;  // means: null for rms_norm
  int64_t rows;
  int chunks;
  float one_over_cols, eps;
};

template <typename Row, bool Centered>
__global__ void __launch_bounds__(kRowThreads<Row>) norm_rows_kernel(NormRows call) {
  using T = typename Row::Element;
  extern __shared__ float4 staged[];
  const int chunks = call.chunks;
  typename Row::Team team;
  Row next;
  int64_t r = team.index();
  if (r < call.rows) next.load(call.x.of<T>(r), chunks);  // under way while columns are staged
  const StagedColumns<T> weights(staged, call.weight, chunks);
  const StagedColumns<T> biases =
      Centered ? StagedColumns<T>(staged + StagedColumns<T>::kGroups * chunks, call.bias, chunks)
               : weights;
  __syncthreads();
  for (; r < call.rows; r += team.count()) {
    float v[Row::kSteps][kChunk<T>];
    next.unpack(v);
    const int64_t following = r + team.count();
    if (following < call.rows) next.load(call.x.of<T>(following), chunks);
    float mean = 0;
    if constexpr (Centered) {  // chunks that are not there are zeros
#pragma unroll
      for (int s = 0; s < Row::kSteps; ++s)
#pragma unroll
        for (float value : v[s]) mean += value;
      mean = team.sum(mean) * call.one_over_cols;
    }
    float square = 0;
    Row::for_each_chunk(chunks, [&](int s, int) {
#pragma unroll
      for (float& value : v[s]) {
        value -= mean;
        square = fmaf(value, value, square);
      }
    });
    const float inverse = inverse_root(fmaf(team.sum(square), call.one_over_cols, call.eps));
    uint4* const to = call.y.of<T>(r);
    Row::for_each_chunk(chunks, [&](int s, int chunk) {
      float gain[kChunk<T>], shift[kChunk<T>];
      weights.read(chunk, gain);
      if constexpr (Centered) biases.read(chunk, shift);
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i) {
        const float x_hat = v[s][i] * inverse;
        v[s][i] = Centered ? fmaf(x_hat, gain[i], shift[i]) : x_hat * gain[i];
      }
      to[chunk] = pack_chunk<T>(v[s]);
    });
    if (team.rank() == 0) {
      if constexpr (Centered) call.means[r] = mean;
      call.inverses[r] = inverse;
    }
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

// False where the rows are not whole chunks, or too long.
template <bool Centered>
bool run_norm_rows(const CudaCall& call, NormRows rows_call) {
  const Operand &x = call.input(0), &y = call.output(0);
  const std::optional<RowStarts> from = row_starts(x), to = row_starts(y);
  const int64_t cols = x.shape().back();
  const size_t shared_bytes = static_cast<size_t>(cols) * (Centered ? 2 : 1) * sizeof(float);
  if (!from || !to || shared_bytes > kStagedBytes) return false;
  rows_call.x = *from, rows_call.y = *to;
  return visit_chunked_dtype(x.dtype, [&]<typename T>() {
    rows_call.chunks = static_cast<int>(cols / kChunk<T>);
    return visit_cached_rows<T, kMostChunks<T>>(cols, [&]<typename Row>(const RowLaunch& launch) {
      const auto kernel = norm_rows_kernel<Row, Centered>;
      kernel<<<resident_blocks(kernel, launch, shared_bytes, rows_call.rows), launch.threads,
               shared_bytes, call.stream>>>(rows_call);
    });
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

}  // namespace brrr
