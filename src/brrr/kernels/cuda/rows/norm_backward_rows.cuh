// Gradients of norms over rows of whole chunks. A team has rows index, index + teams, ..., and each of its threads
// some columns of all of them, over which it sums the gradients of the weights.
#pragma once

#include "brrr/kernels/cuda/rows/norm_rows.cuh"

namespace brrr::kernels {

struct BackwardRows {
  RowStarts x, dy, dx, addend;  // addend: unused where nothing is added to dx
  NormColumns weight;
  const float *means, *inverses;  // means: null for rms_norm
  float* partials;                // [blocks][2][cols]: sums of dy x_hat, and of dy
  int64_t rows;
  int chunks;
  float one_over_cols;
};

// How rows of a kind lie in registers. A thread has 8, 16 or 24 columns and two sums of each.
template <typename Row>
struct BackwardFit {
  static constexpr bool kIsBlock = std::is_same_v<typename Row::Team, BlockTeam>;
  static constexpr bool kIsWide = Row::kPlaces > 16, kIsSmall = sizeof(typename Row::Element) == 2;
  static constexpr int kThreads = kIsBlock ? 512 : 128;  // of a block at most
  // Threads of a multiprocessor, by their registers: 64 or, in f32, 80 for 8 columns; 128; 168 for 24 columns with
  // the next ones ahead.
  static constexpr int kAtOnce = Row::kPlaces <= 8                  ? (kIsSmall ? 1024 : 768)
                                 : kIsWide && kIsSmall && !kIsBlock ? 384
                                                                    : 512;
  // Whether the next row is under way while this one is worked on, and with it what is added to dx; else that is
  // read when it is needed.
  static constexpr bool kReadsAhead = !kIsWide || (kIsSmall && !kIsBlock);
  static constexpr bool kHoldsAddend = kIsSmall && kReadsAhead;
};

// sums += own, group by group of four columns
__device__ inline void add_to(float4& sums, const float* own) {
  sums.x += own[0], sums.y += own[1], sums.z += own[2], sums.w += own[3];
}

// Adds the sums of all teams of the block in order, in shared memory, and writes them.
template <typename Row>
__device__ void write_sums(const float (&own)[Row::kSteps][kChunk<typename Row::Element>],
                           float4* shared, float4* to, int chunks) {
  constexpr int kGroups = kChunk<typename Row::Element> / 4;
  constexpr int kTeams = Row::Team::kTeams;
  for (int turn = 0; turn < kTeams; ++turn) {
    __syncthreads();
    if (Row::Team::place() != turn) continue;
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

// A chunk as numbers. 16-bit rows stay as they are in memory between their two passes, half as many registers, and
// are unpacked in both; the compiler must not know that, or it would keep the numbers.
template <typename T>
__device__ void unpack_again(uint4 words, float (&values)[kChunk<T>]) {
  if constexpr (sizeof(T) == 2)
    asm volatile("" : "+r"(words.x), "+r"(words.y), "+r"(words.z), "+r"(words.w));
  unpack_chunk<T>(words, values);
}

// dx = (g - mean(g) - x_hat mean(g x_hat)) inverse,  g = dy weight; without mean(g) for rms_norm.
// As dy (weight inverse) + (x - mean) slope + offset it needs no x_hat.
template <typename Row, bool Centered, bool Adds>
__global__ void __launch_bounds__(BackwardFit<Row>::kThreads,
                                  BackwardFit<Row>::kAtOnce / BackwardFit<Row>::kThreads)
    norm_backward_rows_kernel(BackwardRows call) {
  using T = typename Row::Element;
  using Fit = BackwardFit<Row>;
  constexpr int kSteps = Row::kSteps, kEach = kChunk<T>;
  constexpr bool kHolds = Adds && Fit::kHoldsAddend;
  extern __shared__ float4 staged[];
  const int chunks = call.chunks;
  typename Row::Team team;
  Row next_x, next_dy, next_addend;
  float next_mean = 0, next_inverse = 0;
  const auto load = [&](int64_t row) {
    next_x.load(call.x.of<T>(row), chunks);
    next_dy.load(call.dy.of<T>(row), chunks);
    if constexpr (kHolds) next_addend.load(call.addend.of<T>(row), chunks);
    if constexpr (Centered) next_mean = call.means[row];
    next_inverse = call.inverses[row];
  };
  float weight_sums[kSteps][kEach] = {}, bias_sums[kSteps][kEach] = {};
  int64_t r = team.index();
  if (Fit::kReadsAhead && r < call.rows) load(r);
  __syncthreads();  // the team's barriers come before anything else in shared memory
  const StagedColumns<T> weights(staged, call.weight, chunks);
  __syncthreads();
  for (; r < call.rows; r += team.count()) {
    if (!Fit::kReadsAhead) load(r);
    const Row x_row = next_x, dy_row = next_dy, addend = next_addend;
    const float mean = next_mean, inverse = next_inverse;
    if (Fit::kReadsAhead && r + team.count() < call.rows) load(r + team.count());
    float sums[Centered ? 2 : 1] = {};  // of g x_hat, and of g
    Row::for_each_chunk(chunks, [&](int s, int chunk) {
      float x[kEach], d[kEach], gain[kEach];
      unpack_chunk<T>(x_row.words[s], x);
      unpack_chunk<T>(dy_row.words[s], d);
      weights.read(chunk, gain);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const float x_hat = (x[i] - mean) * inverse, g = d[i] * gain[i];
        sums[0] = fmaf(g, x_hat, sums[0]);
        weight_sums[s][i] = fmaf(d[i], x_hat, weight_sums[s][i]);
        if constexpr (Centered) sums[1] += g, bias_sums[s][i] += d[i];
      }
    });
    team.sum(sums);
    const float slope = -inverse * inverse * (sums[0] * call.one_over_cols);
    const float offset = Centered ? -inverse * (sums[Centered ? 1 : 0] * call.one_over_cols) : 0;
    const uint4* const added = Adds ? call.addend.of<T>(r) : nullptr;
    uint4* const to = call.dx.of<T>(r);
    Row::for_each_chunk(chunks, [&](int s, int chunk) {
      float x[kEach], d[kEach], gain[kEach];
      unpack_again<T>(x_row.words[s], x);
      unpack_again<T>(dy_row.words[s], d);
      weights.read(chunk, gain);
#pragma unroll
      for (int i = 0; i < kEach; ++i)
        d[i] = fmaf(d[i], gain[i] * inverse, fmaf(x[i] - mean, slope, offset));
      if constexpr (Adds) add_rounded<T>(d, kHolds ? addend.words[s] : added[chunk]);
      to[chunk] = pack_chunk<T>(d);
    });
  }
  const int groups = chunks * (kEach / 4);
  float4* const to =
      reinterpret_cast<float4*>(call.partials) + static_cast<int64_t>(blockIdx.x) * 2 * groups;
  write_sums<Row>(weight_sums, staged, to, chunks);
  if constexpr (Centered) write_sums<Row>(bias_sums, staged, to + groups, chunks);
}

// Calls body.template operator()<Row>(launch) with the type of rows of so many chunks; false where they are longer
// than registers hold. Few threads have a row, with many columns each: with one chunk a thread rows of 4096 took a quarter
// more time.
template <typename T, typename Body>
bool visit_backward_rows(int64_t chunks, const Body& body) {
  constexpr int kScale =
      kChunk<float> * 2 / kChunk<T>;  // f32 has as many columns in twice the chunks
  const auto run = [&]<int Steps, typename Team>(const RowLaunch& launch) {
    body.template operator()<CachedRow<T, Steps * kScale, Team>>(launch);
    return true;
  };
  const auto fits = [&](int64_t steps, int64_t threads) {
    return chunks <= steps * kScale * threads;
  };
  const auto block = [&](int64_t steps) { return block_of_chunks(chunks, steps * kScale); };
  const RowLaunch warps{WarpTeam::kBlock, WarpTeam::kTeams},
      pairs{PairTeam::kBlock, PairTeam::kTeams};
  if (fits(1, 32)) return run.template operator()<1, WarpTeam>(warps);
  if (fits(2, 32)) return run.template operator()<2, WarpTeam>(warps);
  if (fits(3, 32)) return run.template operator()<3, WarpTeam>(warps);
  if (fits(2, 64)) return run.template operator()<2, PairTeam>(pairs);
  if constexpr (sizeof(T) == 2) {
    if (fits(3, 64)) return run.template operator()<3, PairTeam>(pairs);
  }
  if (fits(2, 512)) return run.template operator()<2, BlockTeam>(block(2));
  if (fits(3, 512)) return run.template operator()<3, BlockTeam>(block(3));
  return false;
}

}  // namespace brrr::kernels
