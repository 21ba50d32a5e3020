// Gradients of norms. A team has rows index, index + teams, ..., and each of its threads some columns of all of
// them, over which it sums the gradients of the weights. The sums of a block's teams are added in order, then
// those of the blocks, by a second kernel. How many there are depends on the shape alone.
#include "brrr/ops/norm_cuda.h"
#include "brrr/ops/norm_rows.cuh"
#include "brrr/ops/rows.cuh"
#include "brrr/ops/rows_plain.cuh"

namespace brrr {
namespace {

struct BackwardRows {
  RowStarts x, dy, dx, addend;  // addend: unused where nothing is added to dx
  NormColumns weight;
  const float *means, *inverses;  // means: null for rms_norm
  float* partials;                // [blocks][2][cols]: sums of dy x_hat, and of dy
  int64_t rows;
  int chunks;
  float one_over_cols;
};

// A thread has up to 24 columns: with their sums, three numbers each, that is what 128 registers hold. Where it
// has at most 16, the next row is under way while this one is worked on.
template <typename Row>
constexpr bool kReadsAhead = Row::kPlaces <= 16;
template <typename Row>
constexpr bool kHoldsAddend = sizeof(typename Row::Element) == 2 || Row::kPlaces <= 8;
constexpr int kMostThreads = 512;
template <typename Row>
constexpr int kBackwardThreads =
    std::is_same_v<typename Row::Team, WarpTeam> ? WarpTeam::kBlock : kMostThreads;

// sums += own, group by group of four columns
__device__ void add_to(float4& sums, const float* own) {
  sums.x += own[0], sums.y += own[1], sums.z += own[2], sums.w += own[3];
}

// Adds the sums of all teams of the block in order, in shared memory, and writes them.
template <typename Row>
__device__ void write_sums(const float (&own)[Row::kSteps][kChunk<typename Row::Element>],
                           float4* shared, float4* to, int chunks) {
  constexpr int kGroups = kChunk<typename Row::Element> / 4;
  constexpr int kTeams = std::is_same_v<typename Row::Team, WarpTeam> ? WarpTeam::kBlock / 32 : 1;
  const int team = kTeams == 1 ? 0 : static_cast<int>(threadIdx.x) / 32;
  for (int turn = 0; turn < kTeams; ++turn) {
    __syncthreads();
    if (team != turn) continue;
    Row::for_each_chunk(chunks, [&](int s, int chunk) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        float4 sums = turn == 0 ? float4{0, 0, 0, 0} : shared[group * chunks + chunk];
        add_to(sums, own[s] + 4 * group);
        if (turn + 1 < kTeams)
          shared[group * chunks + chunk] = sums;
        else
          to[chunk * kGroups + group] = sums;
      }
    });
  }
}

// values = what is stored of them, + addend: the bits of an addition behind the norm
template <typename T>
__device__ void add_rounded(float (&values)[kChunk<T>], const uint4& addend) {
  float own[kChunk<T>];
  unpack_chunk<T>(addend, own);
#pragma unroll
  for (int i = 0; i < kChunk<T>; ++i)
    values[i] = convert_fast<float>(convert_fast<T>(values[i])) + own[i];
}

// dx = (g - mean(g) - x_hat mean(g x_hat)) inverse,  g = dy weight; without mean(g) for rms_norm
template <typename Row, bool Centered, bool Adds>
__global__ void __launch_bounds__(kBackwardThreads<Row>, kMostThreads / kBackwardThreads<Row>)
    norm_backward_rows_kernel(BackwardRows call) {
  using T = typename Row::Element;
  constexpr int kSteps = Row::kSteps, kEach = kChunk<T>;
  extern __shared__ float4 staged[];
  const int chunks = call.chunks;
  typename Row::Team team;
  Row next_x, next_dy;
  float next_mean = 0, next_inverse = 0;
  const auto load = [&](int64_t row) {
    next_x.load(call.x.of<T>(row), chunks);
    next_dy.load(call.dy.of<T>(row), chunks);
    if constexpr (Centered) next_mean = call.means[row];
    next_inverse = call.inverses[row];
  };
  float weight_sums[kSteps][kEach] = {}, bias_sums[kSteps][kEach] = {};
  int64_t r = team.index();
  if (kReadsAhead<Row> && r < call.rows) load(r);
  const StagedColumns<T> weights(staged, call.weight, chunks);
  __syncthreads();
  for (; r < call.rows; r += team.count()) {
    if (!kReadsAhead<Row>) load(r);
    float x_hat[kSteps][kEach], g[kSteps][kEach];
    next_x.unpack(x_hat);
    next_dy.unpack(g);
    const float mean = next_mean, inverse = next_inverse;
    if (kReadsAhead<Row> && r + team.count() < call.rows) load(r + team.count());
    float sums[Centered ? 2 : 1] = {};  // of g x_hat, and of g
    Row::for_each_chunk(chunks, [&](int s, int chunk) {
      float gain[kEach];
      weights.read(chunk, gain);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const float d = g[s][i];
        x_hat[s][i] = (x_hat[s][i] - mean) * inverse;
        g[s][i] = d * gain[i];
        sums[0] = fmaf(g[s][i], x_hat[s][i], sums[0]);
        weight_sums[s][i] = fmaf(d, x_hat[s][i], weight_sums[s][i]);
        if constexpr (Centered) sums[1] += g[s][i], bias_sums[s][i] += d;
      }
    });
    Row addend;  // under way during the sum, where registers hold it
    const uint4* const added = Adds ? call.addend.of<T>(r) : nullptr;
    if constexpr (Adds && kHoldsAddend<Row>) addend.load(added, chunks);
    team.sum(sums);
    const float along = sums[0] * call.one_over_cols;
    const float shift = Centered ? sums[Centered ? 1 : 0] * call.one_over_cols : 0;
    uint4* const to = call.dx.of<T>(r);
    Row::for_each_chunk(chunks, [&](int s, int chunk) {
#pragma unroll
      for (int i = 0; i < kEach; ++i)
        g[s][i] = fmaf(-x_hat[s][i], along, Centered ? g[s][i] - shift : g[s][i]) * inverse;
      if constexpr (Adds) add_rounded<T>(g[s], kHoldsAddend<Row> ? addend.words[s] : added[chunk]);
      to[chunk] = pack_chunk<T>(g[s]);
    });
  }
  const int groups = chunks * (kEach / 4);
  float4* const to =
      reinterpret_cast<float4*>(call.partials) + static_cast<int64_t>(blockIdx.x) * 2 * groups;
  write_sums<Row>(weight_sums, staged, to, chunks);
  if constexpr (Centered) write_sums<Row>(bias_sums, staged, to + groups, chunks);
}

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

// Blocks that have `teams` rows at a time: as many as 132 multiprocessors hold at once, `each` of them. Fewer where
// a team would have less than 4 rows, since its sums cost as much as a row or two, but two a multiprocessor.
constexpr int64_t kMultiprocessors = 132;
int64_t backward_blocks(int64_t rows, int64_t teams, int64_t each) {
  const int64_t few = std::min((rows + teams - 1) / teams, 2 * kMultiprocessors);
  return std::min(each * kMultiprocessors, std::max(few, rows / (4 * teams)));
}
constexpr int64_t kMostEach = 16, kPlainEach = 4;  // blocks of a multiprocessor

// Calls body.template operator()<Row>(launch) with rows of 8 to 24 columns a thread; false where they are longer.
template <typename T, typename Body>
bool visit_backward_rows(int64_t chunks, const Body& body) {
  constexpr int kScale =
      kChunk<float> * 2 / kChunk<T>;  // f32 has as many columns in twice the chunks
  const RowLaunch warps{WarpTeam::kBlock, WarpTeam::kBlock / 32};
  const auto fits = [&](int64_t steps, int64_t threads) {
    return chunks <= steps * kScale * threads;
  };
  const auto block = [&](int64_t steps) { return block_of_chunks(chunks, steps * kScale); };
  if (fits(1, 32)) return body.template operator()<CachedRow<T, kScale, WarpTeam>>(warps);
  if (fits(2, 32)) return body.template operator()<CachedRow<T, 2 * kScale, WarpTeam>>(warps);
  if (fits(3, 32)) return body.template operator()<CachedRow<T, 3 * kScale, WarpTeam>>(warps);
  if (fits(2, kMostThreads))
    return body.template operator()<CachedRow<T, 2 * kScale, BlockTeam>>(block(2));
  if (fits(3, kMostThreads))
    return body.template operator()<CachedRow<T, 3 * kScale, BlockTeam>>(block(3));
  return false;
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
      const int64_t at_once = Row::kPlaces <= 8 ? 1024 : 512;  // threads, by their registers
      launched.blocks = backward_blocks(
          rows, launch.teams, std::clamp<int64_t>(at_once / launch.threads, 1, kMostEach));
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
    launched.blocks = backward_blocks(rows, 1, kPlainEach);
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

int64_t norm_backward_cuda_workspace(const CudaCall& call) {
  const Operand& x = call.input(0);
  const int64_t blocks = backward_blocks(norm_row_count(x), 1, kMostEach);
  return blocks * 2 * x.shape().back() * (x.dtype == DType::f64 ? 8 : 4);
}

}  // namespace brrr
