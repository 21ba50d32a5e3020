// Norms over the last axis: a team of threads has a row. Backward gives a team several rows in order, cut by
// shape alone; each thread sums the weights' gradients of its own columns over them, and the teams' sums are
// added in order afterwards.
#include "brrr/ops/norm_cuda.h"
#include "brrr/ops/rows.cuh"

namespace brrr {
namespace {

// A vector over the columns: of a known type in order, or of any (void).
template <typename W>
struct Columns {
  Elements data;
  int64_t stride;
  explicit Columns(const Operand& x) : data(x), stride(x.layout->strides[0]) {}
  template <typename C>
  __device__ C at(int64_t col) const {
    if constexpr (std::is_void_v<W>)
      return data.load<C>(col * stride);
    else
      return convert_fast<C>(reinterpret_cast<const W*>(data.base)[col]);
  }
};

// A vector over the columns of cached rows, kept in registers from row to row; read again for plain ones.
template <typename Row, typename W>
struct KeptColumns {
  using C = typename Row::Value;
  Columns<W> columns;
  C values[Row::kPlaces];

  __device__ KeptColumns(const Columns<W>& x, int64_t cols) : columns(x) {
    if constexpr (Row::kCached) {
      Row::for_each_column(
          cols, [&](int col, int place) { values[place] = columns.template at<C>(col); });
    }
  }
  __device__ C at(int col, int place) const {
    if constexpr (Row::kCached)
      return values[place];
    else
      return columns.template at<C>(col);
  }
};

// Calls body.template operator()<Row, W>(launch). Training has f32 and bf16 rows with weights in order, of f32 or
// of the rows' own dtype; everything else goes the plain way.
template <typename Body>
void visit_norm_rows(const Operand& x, const Operand& weight, const Operand& bias, bool chunked,
                     const Body& body) {
  const int64_t cols = x.shape().back();
  const auto with = [&]<typename W>() {
    return [&]<typename Row>(const RowLaunch& launch) { body.template operator()<Row, W>(launch); };
  };
  const bool in_order =
      weight.layout->strides[0] == 1 && bias.layout->strides[0] == 1 && weight.dtype == bias.dtype;
  if (chunked && in_order && weight.dtype == DType::f32) {
    const auto run = with.template operator()<float>();
    if (x.dtype == DType::f32 && visit_cached_rows<float>(cols, run)) return;
    if (x.dtype == DType::bf16 && visit_cached_rows<bf16>(cols, run)) return;
  }
  if (chunked && in_order && weight.dtype == DType::bf16 && x.dtype == DType::bf16) {
    if (visit_cached_rows<bf16>(cols, with.template operator()<bf16>())) return;
  }
  visit_plain_rows(x.dtype, cols, with.template operator()<void>());
}

template <typename Row, typename W, bool centered>
__global__ void norm_kernel(RowsOf x, Columns<W> weight, Columns<W> bias, RowsOf y, Elements means,
                            Elements inverses, int64_t rows, int64_t cols, double eps) {
  using C = typename Row::Value;
  using Team = typename Row::Team;
  const KeptColumns<Row, W> weights(weight, cols), biases(bias, cols);
  for (int64_t r = Team::index(); r < rows; r += Team::count()) {
    Row row(x, r, cols);
    C mean = 0;
    if constexpr (centered) {
      row.for_each([&](C& v, int, int) { mean += v; });
      mean = Team::sum(mean) / static_cast<C>(cols);
    }
    C square = 0;
    row.for_each([&](C& v, int, int) { square += (v - mean) * (v - mean); });
    const C inverse = C(1) / sqrt(Team::sum(square) / static_cast<C>(cols) + static_cast<C>(eps));
    row.store(y, r, [&](C v, int col, int place) {
      const C scaled = (v - mean) * inverse * weights.at(col, place);
      return centered ? scaled + biases.at(col, place) : scaled;
    });
    if (Team::rank() == 0) {
      if (centered) means.store<C>(r, mean);
      inverses.store<C>(r, inverse);
    }
  }
}

template <typename W>
struct BackwardCall {
  RowsOf x, dy, dx;
  Columns<W> weight;
  Elements means, inverses;
  Walk mean_walk, inverse_walk;
  int64_t rows, cols, rows_per_team;
  void* partials;  // [teams][2][cols]: sums of dy x_hat, and of dy
};

// dx = (g - mean(g) - x_hat mean(g x_hat)) inverse,  g = dy weight; without mean(g) for rms_norm
template <typename Row, typename W, bool centered>
__global__ void norm_backward_kernel(BackwardCall<W> call) {
  using C = typename Row::Value;
  using Team = typename Row::Team;
  constexpr int kPlaces = Row::kPlaces;
  C weight_sums[kPlaces] = {}, bias_sums[kPlaces] = {};
  const KeptColumns<Row, W> weights(call.weight, call.cols);
  const int64_t first = Team::index() * call.rows_per_team,
                end = min(call.rows, first + call.rows_per_team);
  if (first >= end) return;  // a whole team; no barrier of the block is behind this for warps
  C* const partials = static_cast<C*>(call.partials) + Team::index() * 2 * call.cols;
  for (int64_t r = first; r < end; ++r) {
    Row row(call.x, r, call.cols), grad(call.dy, r, call.cols);
    const int64_t grad_start = call.dy.rows.position(r);
    const C mean = centered ? call.means.template load<C>(call.mean_walk.position(r)) : C(0);
    const C inverse = call.inverses.template load<C>(call.inverse_walk.position(r));
    const auto grad_at = [&](int col, int place) {
      if constexpr (Row::kCached)
        return grad.values[place];
      else
        return call.dy.data.template load<C>(grad_start + col * call.dy.stride);
    };
    C sum = 0, along = 0;
    row.for_each([&](C& v, int col, int place) {
      const C d = grad_at(col, place), x_hat = (v - mean) * inverse, g = d * weights.at(col, place);
      sum += g;
      along += g * x_hat;
      if constexpr (Row::kCached) {
        weight_sums[place] += d * x_hat;
        bias_sums[place] += d;
      } else {  // this thread alone has this column
        const bool starts = r == first;
        C* const own = partials + col;
        own[0] = (starts ? C(0) : own[0]) + d * x_hat;
        own[call.cols] = (starts ? C(0) : own[call.cols]) + d;
      }
    });
    const C n = static_cast<C>(call.cols);
    const C mean_g = centered ? Team::sum(sum) / n : C(0), mean_along = Team::sum(along) / n;
    row.store(call.dx, r, [&](C v, int col, int place) {
      const C x_hat = (v - mean) * inverse, g = grad_at(col, place) * weights.at(col, place);
      return (g - mean_g - x_hat * mean_along) * inverse;
    });
  }
  if constexpr (Row::kCached) {
    Row::for_each_column(call.cols, [&](int col, int place) {
      partials[col] = weight_sums[place];
      partials[call.cols + col] = bias_sums[place];
    });
  }
}

// Sums over the teams. A block has 32 columns; its 32 parts add a share of the teams each, in order, and the
// shares are added in order. Columns [0, cols) are the weight's, the next as many the bias's.
constexpr int kShares = 32;
template <typename C>
__global__ void __launch_bounds__(32 * kShares)
    sum_partials_kernel(const C* partials, Elements dweight, Elements dbias, int64_t teams,
                        int64_t cols, bool has_bias) {
  __shared__ C shares[kShares][33];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
  const int64_t share = (teams + kShares - 1) / kShares, first = threadIdx.y * share,
                end = min(teams, first + share);
  C sum = 0;
  if (i < 2 * cols) {
#pragma unroll 8
    for (int64_t team = first; team < end; ++team) sum += partials[team * 2 * cols + i];
  }
  shares[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || i >= 2 * cols) return;
  for (int s = 1; s < kShares; ++s) sum += shares[s][threadIdx.x];
  if (i < cols)
    dweight.store<C>(i, sum);
  else if (has_bias)
    dbias.store<C>(i - cols, sum);
}

constexpr int64_t kMaxTeams = 2048;

int64_t rows_per_team(int64_t rows) {
  return std::max<int64_t>(1, (rows + kMaxTeams - 1) / kMaxTeams);
}
int64_t team_count(int64_t rows) {
  const int64_t each = rows_per_team(rows);
  return (rows + each - 1) / each;
}
int64_t row_count(const Operand& x) {
  return x.shape().back() == 0 ? 0 : x.count() / x.shape().back();
}

// Few enough blocks that a team has some rows to read its weights for, and enough for any GPU.
unsigned norm_blocks(int64_t rows, int64_t teams) {
  return std::min(blocks_for(rows, teams), 2048u);
}

template <bool centered>
void run_norm(const CudaCall& call) {
  const Operand &x = call.input(0), &y = call.output(0), &weight = call.input(1),
                &bias = call.input(centered ? 2 : 1);
  const int64_t cols = x.shape().back(), rows = row_count(x);
  if (rows == 0) return;
  const double eps = call.attrs.number("eps");
  visit_norm_rows(x, weight, bias, is_chunked(x) && is_chunked(y),
                  [&]<typename Row, typename W>(const RowLaunch& launch) {
                    norm_kernel<Row, W, centered>
                        <<<norm_blocks(rows, launch.teams), launch.threads, 0, call.stream>>>(
                            RowsOf(x), Columns<W>(weight), Columns<W>(bias), RowsOf(y),
                            Elements(call.output(1)), Elements(call.output(centered ? 2 : 1)), rows,
                            cols, eps);
                  });
  cuda::check_launch(call.op.name);
}

template <bool centered>
void run_norm_backward(const CudaCall& call) {
  const Operand &x = call.input(0), &dy = call.input(centered ? 4 : 3), &dx = call.output(0),
                &weight = call.input(1), &mean = call.input(2),
                &inverse = call.input(centered ? 3 : 2);
  const int64_t cols = x.shape().back(), rows = row_count(x), teams = team_count(rows);
  if (cols == 0) return;
  const bool chunked = is_chunked(x) && is_chunked(dy) && is_chunked(dx);
  if (rows > 0) {
    visit_norm_rows(x, weight, weight, chunked,
                    [&]<typename Row, typename W>(const RowLaunch& launch) {
                      const BackwardCall<W> backward{.x = RowsOf(x),
                                                     .dy = RowsOf(dy),
                                                     .dx = RowsOf(dx),
                                                     .weight = Columns<W>(weight),
                                                     .means = Elements(mean),
                                                     .inverses = Elements(inverse),
                                                     .mean_walk = walk_of(*mean.layout),
                                                     .inverse_walk = walk_of(*inverse.layout),
                                                     .rows = rows,
                                                     .cols = cols,
                                                     .rows_per_team = rows_per_team(rows),
                                                     .partials = call.workspace.data()};
                      norm_backward_kernel<Row, W, centered>
                          <<<static_cast<unsigned>((teams + launch.teams - 1) / launch.teams),
                             launch.threads, 0, call.stream>>>(backward);
                    });
    cuda::check_launch(call.op.name);
  }
  const auto finish = [&]<typename C>() {
    sum_partials_kernel<C>
        <<<static_cast<unsigned>((2 * cols + 31) / 32), dim3(32, kShares), 0, call.stream>>>(
            reinterpret_cast<const C*>(call.workspace.data()), Elements(call.output(1)),
            Elements(call.output(centered ? 2 : 1)), teams, cols, centered);
  };
  x.dtype == DType::f64 ? finish.template operator()<double>()
                        : finish.template operator()<float>();
  cuda::check_launch(call.op.name);
}

}  // namespace

void layer_norm_cuda(const CudaCall& call) { run_norm<true>(call); }
void rms_norm_cuda(const CudaCall& call) { run_norm<false>(call); }
void layer_norm_backward_cuda(const CudaCall& call) { run_norm_backward<true>(call); }
void rms_norm_backward_cuda(const CudaCall& call) { run_norm_backward<false>(call); }

int64_t norm_backward_cuda_workspace(const CudaCall& call) {
  const Operand& x = call.input(0);
  return team_count(row_count(x)) * 2 * x.shape().back() * 8;
}

}  // namespace brrr
