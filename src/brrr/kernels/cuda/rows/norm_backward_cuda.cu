// Gradients of norms. A team has rows index, index + teams, ..., and each of its threads some columns of all of
// them, over which it sums the gradients of the weights. The sums of a block's teams are added in order, then
// those of the blocks, by a second kernel. How many there are depends on the shape alone.
#include "brrr/kernels/cuda/device/rows_plain.cuh"
#include "brrr/kernels/cuda/rows/norm_backward_rows.cuh"
#include "brrr/kernels/cuda/rows/norm_backward_split.h"
#include "brrr/kernels/cuda/rows/norm_cuda.h"

namespace brrr::kernels {
namespace {

struct BackwardPlain {
  RowsOf x, dy, dx, addend;
  bool adds;
  NormColumns weight;
  Elements means, inverses;
  Walk mean_walk, inverse_walk;
  int64_t rows, cols;
  void* partials;  // as above
};

template <typename C, bool Centered>
__global__ void norm_backward_plain_kernel(BackwardPlain call) {
  BlockTeam team;
  C* const partials = static_cast<C*>(call.partials) + team.index() * 2 * call.cols;
  for (int64_t r = team.index(); r < call.rows; r += team.count()) {
    const PlainRow<C> x(call.x, r, call.cols), dy(call.dy, r, call.cols), dx(call.dx, r, call.cols),
        addend(call.addend, r, call.cols);
    const C mean = Centered ? call.means.template load<C>(call.mean_walk.position(r)) : C(0);
    const C inverse = call.inverses.template load<C>(call.inverse_walk.position(r));
    const bool starts = r == team.index();
    C sums[2] = {};
    x.for_each_column([&](int64_t col) {
      const C d = dy.at(col), x_hat = (x.at(col) - mean) * inverse;
      const C g = d * call.weight.at<C>(col);
      sums[0] += g * x_hat;
      sums[1] += g;
      C* const own = partials + col;  // this thread alone has this column
      own[0] = (starts ? C(0) : own[0]) + d * x_hat;
      own[call.cols] = (starts ? C(0) : own[call.cols]) + d;
    });
    team.sum(sums);
    const C n = static_cast<C>(call.cols), along = sums[0] / n, shift = Centered ? sums[1] / n : 0;
    x.for_each_column([&](int64_t col) {
      const C x_hat = (x.at(col) - mean) * inverse, g = dy.at(col) * call.weight.at<C>(col);
      dx.set(col, (g - shift - x_hat * along) * inverse);
      if (call.adds) dx.set(col, dx.at(col) + addend.at(col));  // of what was rounded
    });
  }
}

// Sums over the blocks. A block has 32 columns; its 32 parts add a share of the blocks each, in order, and the
// shares are added in order. Columns [0, cols) are the weight's, the next as many the bias's.
constexpr int kShares = 32;
template <typename C>
__global__ void __launch_bounds__(32 * kShares)
    sum_partials_kernel(const C* partials, Elements dweight, Elements dbias, int64_t blocks,
                        int64_t cols, int64_t results) {
  __shared__ C shares[kShares][33];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
  const int64_t share = (blocks + kShares - 1) / kShares, first = threadIdx.y * share,
                end = min(blocks, first + share);
  C sum = 0;
  if (i < results) {
#pragma unroll 8
    for (int64_t block = first; block < end; ++block) sum += partials[block * 2 * cols + i];
  }
  shares[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || i >= results) return;
  for (int s = 1; s < kShares; ++s) sum += shares[s][threadIdx.x];
  if (i < cols)
    dweight.store<C>(i, sum);
  else
    dbias.store<C>(i - cols, sum);
}

struct Launched {
  int64_t blocks = 0;  // none: rows are not whole chunks, or too long for registers
};

template <bool Centered, bool Adds>
Launched run_backward_rows(const CudaCall& call, const Operand& dy, const Operand& inverse) {
  const Operand &x = call.input(0), &dx = call.output(0), &mean = call.input(2);
  const Operand& addend = Adds ? call.inputs.back() : x;
  const std::optional<RowStarts> x_starts = row_starts(x), dy_starts = row_starts(dy),
                                 dx_starts = row_starts(dx), addend_starts = row_starts(addend);
  if (!x_starts || !dy_starts || !dx_starts || !addend_starts || !mean.layout->is_contiguous() ||
      !inverse.layout->is_contiguous())
    return {};
  const int64_t cols = x.shape().back(), rows = norm_row_count(x);
  Launched launched;
  visit_chunked_dtype(x.dtype, [&]<typename T>() {
    const int64_t chunks = cols / kChunk<T>;
    BackwardRows rows_call{.x = *x_starts,
                           .dy = *dy_starts,
                           .dx = *dx_starts,
                           .addend = *addend_starts,
                           .weight = NormColumns(call.input(1)),
                           .means = Elements(mean).as<float>(),
                           .inverses = Elements(inverse).as<float>(),
                           .partials = reinterpret_cast<float*>(call.workspace.data()),
                           .rows = rows,
                           .chunks = static_cast<int>(chunks),
                           .one_over_cols = 1 / static_cast<float>(cols)};
    const auto shared_bytes = static_cast<size_t>(cols) * sizeof(float);
    if (shared_bytes > kStagedBytes) return false;
    return visit_backward_rows<T>(chunks, [&]<typename Row>(const RowLaunch& launch) {
      launched.blocks = norm_backward_blocks(
          rows, launch.teams,
          std::clamp<int64_t>(BackwardFit<Row>::kAtOnce / launch.threads, 1, kMostBlocksPerSm),
          call.chip.sm_count);
      norm_backward_rows_kernel<Row, Centered, Adds>
          <<<static_cast<unsigned>(launched.blocks), launch.threads, shared_bytes, call.stream>>>(
              rows_call);
      return true;
    });
  });
  return launched;
}

template <bool Centered>
void run_norm_backward(const CudaCall& call) {
  const Operand &x = call.input(0), &dy = call.input(Centered ? 4 : 3),
                &inverse = call.input(Centered ? 3 : 2), &mean = call.input(2);
  const int64_t cols = x.shape().back(), rows = norm_row_count(x);
  if (cols == 0) return;
  const bool adds = call.inputs.size() > (Centered ? 5 : 4);
  Launched launched;
  if (rows > 0)
    launched = adds ? run_backward_rows<Centered, true>(call, dy, inverse)
                    : run_backward_rows<Centered, false>(call, dy, inverse);
  if (rows > 0 && launched.blocks == 0) {
    const int threads = plain_row_threads(cols);
    launched.blocks = norm_backward_blocks(rows, 1, kPlainBlocksPerSm, call.chip.sm_count);
    const BackwardPlain plain{.x = RowsOf(x),
                              .dy = RowsOf(dy),
                              .dx = RowsOf(call.output(0)),
                              .addend = RowsOf(adds ? call.inputs.back() : x),
                              .adds = adds,
                              .weight = NormColumns(call.input(1)),
                              .means = Elements(mean),
                              .inverses = Elements(inverse),
                              .mean_walk = walk_of(*mean.layout),
                              .inverse_walk = walk_of(*inverse.layout),
                              .rows = rows,
                              .cols = cols,
                              .partials = call.workspace.data()};
    visit_plain(x.dtype, [&]<typename C>() {
      norm_backward_plain_kernel<C, Centered>
          <<<static_cast<unsigned>(launched.blocks), threads, 0, call.stream>>>(plain);
    });
  }
  cuda::check_launch(call.op.name);
  const int64_t results = cols * (Centered ? 2 : 1);
  visit_plain(x.dtype, [&]<typename C>() {
    sum_partials_kernel<C>
        <<<static_cast<unsigned>((results + 31) / 32), dim3(32, kShares), 0, call.stream>>>(
            reinterpret_cast<const C*>(call.workspace.data()), Elements(call.output(1)),
            Elements(call.output(Centered ? 2 : 1)), launched.blocks, cols, results);
  });
  cuda::check_launch(call.op.name);
}

}  // namespace

void layer_norm_backward_cuda(const CudaCall& call) { run_norm_backward<true>(call); }
void rms_norm_backward_cuda(const CudaCall& call) { run_norm_backward<false>(call); }

}  // namespace brrr::kernels
