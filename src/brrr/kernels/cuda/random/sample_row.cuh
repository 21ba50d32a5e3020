// The parts of sample_tokens_cuda.cu: the blocks that have a row, and the row's logits, keys and weights.
#pragma once

#include <cooperative_groups.h>

#include "brrr/kernels/cuda/device/elements.cuh"
#include "brrr/kernels/scalar/sampling.h"

namespace brrr::kernels::token_draw {

constexpr int kThreads = 512, kWarps = kThreads / 32, kBins = 256;
constexpr uint32_t kNone = UINT32_MAX;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Options {
  double temperature, top_p, min_p, penalty;
  uint64_t seed;
  DrawPlace place;
  int64_t top_k;
};

// Whole numbers that order as the floats do: negative ones grow downwards, so all their bits turn.
__device__ inline uint64_t key_of(double value) {
  const auto bits = static_cast<uint64_t>(__double_as_longlong(value));
  return bits >> 63 != 0 ? ~bits : bits | uint64_t{1} << 63;
}
__device__ inline double value_of(uint64_t key) {
  return __longlong_as_double(
      static_cast<int64_t>(key >> 63 != 0 ? key & ~(uint64_t{1} << 63) : ~key));
}

// What a part of a row says of itself. Of several that are best the lowest id counts.
struct Extremes {
  uint64_t best_key, least_key;  // the least that is finite
  uint32_t best_id_turned;       // ~id: the larger, the lower
  uint32_t bad;                  // 2 id + (is NaN) of the first that is NaN or inf

  static __device__ Extremes none() { return {0, UINT64_MAX, 0, kNone}; }
  __device__ Extremes operator+(const Extremes& other) const {
    const bool is_other_best = other.best_key > best_key || (other.best_key == best_key &&
                                                             other.best_id_turned > best_id_turned);
    return {is_other_best ? other.best_key : best_key, min(least_key, other.least_key),
            is_other_best ? other.best_id_turned : best_id_turned, min(bad, other.bad)};
  }
  __device__ Extremes from_lane(int lane_turn) const {
    return {__shfl_xor_sync(~0u, best_key, lane_turn), __shfl_xor_sync(~0u, least_key, lane_turn),
            __shfl_xor_sync(~0u, best_id_turned, lane_turn), __shfl_xor_sync(~0u, bad, lane_turn)};
  }
};
struct Sum {
  uint64_t value;
  __device__ Sum operator+(const Sum& other) const { return {value + other.value}; }
  __device__ Sum from_lane(int lane_turn) const { return {__shfl_xor_sync(~0u, value, lane_turn)}; }
};

// A sum of 64 bits in two words: shared memory adds words by itself.
struct Histogram {
  uint32_t low[kBins], high[kBins];
  __device__ void add(uint32_t bin, uint64_t measure) {
    const auto added = static_cast<uint32_t>(measure);
    const uint32_t before = atomicAdd(&low[bin], added);
    const uint32_t carried = static_cast<uint32_t>(measure >> 32) + (before + added < before);
    if (carried != 0) atomicAdd(&high[bin], carried);
  }
  __device__ uint64_t at(int bin) const {
    return static_cast<uint64_t>(high[bin]) << 32 | low[bin];
  }
};

struct Shared {
  // What other blocks read. Two sets take turns: who writes one again has passed the barrier behind which all
  // others had read it.
  Histogram histograms[2];
  Extremes extremes[2];
  Sum sums[2];
  // Of this block alone.
  Extremes warp_extremes[kWarps];
  Sum warp_sums[kWarps];
  uint64_t combined[kBins];
  uint64_t above;  // what search_digit found
  uint32_t digit;
};

// The blocks of a row. Calls of its functions are the same in all of their threads.
class Team {
 public:
  __device__ explicit Team(Shared& shared) : shared_(shared) {}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  static __device__ int size() {
    return static_cast<int>(cooperative_groups::this_cluster().num_blocks());
  }
  static __device__ int rank() {
    return static_cast<int>(cooperative_groups::this_cluster().block_rank());
  }
  static __device__ void meet() { cooperative_groups::this_cluster().sync(); }
  template <typename T>
  static __device__ const T& of_block(T& mine, int rank) {
    return *cooperative_groups::this_cluster().map_shared_rank(&mine, rank);
  }
#else
  static __device__ int size() { return 1; }
  static __device__ int rank() { return 0; }
  static __device__ void meet() { __syncthreads(); }
  template <typename T>
  static __device__ const T& of_block(T& mine, int) {
    return mine;
  }
#endif
  // No block goes while another may read its memory.
  static __device__ void leave() { meet(); }

  __device__ Shared& shared() { return shared_; }
  __device__ int next_turn() { return turn_ ^= 1; }

  __device__ Extremes join(const Extremes& mine, const Extremes& none) {
    return join_in(mine, none, shared_.warp_extremes, shared_.extremes);
  }
  __device__ uint64_t sum(uint64_t mine) {
    return join_in(Sum{mine}, Sum{0}, shared_.warp_sums, shared_.sums).value;
  }
  // Exclusive: what the threads before this one have, blocks before this one included, and all together.
  struct Before {
    uint64_t before, total;
  };
  __device__ Before scan(uint64_t mine);

 private:
  // All operations commute and are exact, so any order gives the same.
  template <typename T>
  static __device__ T join_lanes(T value) {
#pragma unroll
    for (int turn = 16; turn > 0; turn /= 2) value = value + value.from_lane(turn);
    return value;
  }
  template <typename T>
  __device__ T join_in(T value, const T& none, T (&of_warps)[kWarps], T (&of_blocks)[2]) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    value = join_lanes(value);
    if (lane == 0) of_warps[warp] = value;
    __syncthreads();
    T& published = of_blocks[next_turn()];
    if (warp == 0) {
      value = join_lanes(lane < kWarps ? of_warps[lane] : none);
      if (lane == 0) published = value;
    }
    meet();
    value = none;
    for (int block = 0; block < size(); ++block) value = value + of_block(published, block);
    return value;
  }

  Shared& shared_;
  int turn_ = 0;
};

__device__ inline Team::Before Team::scan(uint64_t mine) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  uint64_t inclusive = mine;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint64_t left = __shfl_up_sync(~0u, inclusive, distance);
    if (lane >= distance) inclusive += left;
  }
  if (lane == 31) shared_.warp_sums[warp] = {inclusive};
  __syncthreads();
  Sum& published = shared_.sums[next_turn()];
  uint64_t before = inclusive - mine, of_block_total = 0;
  for (int w = 0; w < kWarps; ++w) {
    const uint64_t sum = shared_.warp_sums[w].value;
    if (w < warp) before += sum;
    of_block_total += sum;
  }
  if (threadIdx.x == 0) published = {of_block_total};
  meet();
  uint64_t total = 0;
  for (int block = 0; block < size(); ++block) {
    const uint64_t sum = of_block(published, block).value;
    if (block < rank()) before += sum;
    total += sum;
  }
  return {before, total};
}

// How a row is cut: block b has `part` ids from b * part on, the last block what is left.
struct RowParts {
  uint32_t vocab, part;
  int weight_bits;
};

// The part of a row that a block has: in shared memory, or read anew each time where it does not fit.
template <bool kIsStaged, typename Source>
class Row {
 public:
  __device__ Row(const Source& source, const RowParts& parts, int rank, double* staged)
      : source_(source),
        staged_(staged),
        vocab_(parts.vocab),
        first_(min(parts.vocab, rank * parts.part)),
        count_(min(parts.part, parts.vocab - first_)) {}

  __device__ uint32_t vocab() const { return vocab_; }

  // Reads the row, several elements of a thread under way at a time.
  __device__ Extremes stage() {
    constexpr uint32_t kSteps = 8;
    Extremes found = Extremes::none();
    for (uint32_t first = threadIdx.x; first < count_; first += kSteps * kThreads) {
      double read[kSteps];
#pragma unroll
      for (uint32_t s = 0; s < kSteps; ++s) {
        const uint32_t i = first + s * kThreads;
        read[s] = i < count_ ? source_(first_ + i) : -kInfinity;
      }
#pragma unroll
      for (uint32_t s = 0; s < kSteps; ++s) {
        const uint32_t i = first + s * kThreads;
        if (i >= count_) break;
        if constexpr (kIsStaged) staged_[i] = read[s];
        found = found + extremes_of(first_ + i, read[s]);
      }
    }
    return found;
  }

  __device__ double at(uint32_t i) const {
    if constexpr (kIsStaged) return staged_[i];
    return source_(first_ + i);
  }
  // body(id, value), in any order.
  template <typename Body>
  __device__ void for_each(const Body& body) const {
    for (uint32_t i = threadIdx.x; i < count_; i += kThreads) body(first_ + i, at(i));
  }
  // The ids that follow each other in one thread, threads in their order; an odd number of them, so that
  // threads side by side read different banks.
  template <typename Body>
  __device__ void for_each_of_own(const Body& body) const {
    const uint32_t own = (count_ + kThreads - 1) / kThreads | 1;
    const uint32_t begin = min(count_, threadIdx.x * own), end = min(count_, begin + own);
    for (uint32_t i = begin; i < end; ++i) body(first_ + i, at(i));
  }

 private:
  static __device__ Extremes extremes_of(uint32_t id, double value) {
    if (!(value < kInfinity)) return {0, UINT64_MAX, 0, 2 * id + (value != value ? 1 : 0)};
    const uint64_t key = key_of(value);
    return {key, value > -kInfinity ? key : UINT64_MAX, ~id, kNone};
  }

  Source source_;
  double* staged_;
  uint32_t vocab_, first_, count_;
};

// e^((value - best) / temperature) as whole numbers, and places on a scale from the least value to the best.
class Weights {
 public:
  static constexpr int kPlaceBytes = 3;
  static constexpr uint32_t kBestPlace = (1 << 8 * kPlaceBytes) - 1;

  __device__ Weights(double temperature, const Extremes& found, int bits)
      : best_(value_of(found.best_key)), slope_(1 / temperature) {
    unit_ = static_cast<double>(uint64_t{1} << bits);
    // What lies so far below the best that its weight rounds to zero shares the last place.
    const double span = min(kDepth * temperature, best_ - value_of(found.least_key));
    places_per_step_ = kBestPlace / span;
  }
  __device__ uint64_t of(double value) const { return at_least(value, 0); }
  // 0 for a weight below `least`.
  __device__ uint64_t at_least(double value, double least) const {
    const double x = value == best_ ? 0 : (value - best_) * slope_;
    if (x < -kDepth) return 0;
    const double weight = exp(x);
    return weight >= least ? static_cast<uint64_t>(__double2ull_rn(weight * unit_)) : 0;
  }
  // Grows with the value, if not strictly; equal steps are equal distances, so that a histogram of the first
  // bytes is spread.
  __device__ uint32_t place_of(double value) const {
    const double distance = best_ - value;
    if (distance == 0) return kBestPlace;
    const double steps = distance * places_per_step_;
    return steps < kBestPlace ? kBestPlace - static_cast<uint32_t>(steps) : 0;
  }

 private:
  static constexpr double kDepth = 37;  // e^-37 2^52 < 1/2, and 52 bits are the most
  double best_, slope_, unit_, places_per_step_;
};

}  // namespace brrr::kernels::token_draw
