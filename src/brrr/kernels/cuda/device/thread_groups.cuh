// Teams of threads that have a row at a time: a warp, two warps, or a block. Sums and maxima are the same in all threads
// of a team, and have one order.
#pragma once

#include "brrr/kernels/cuda/device/elements.cuh"

namespace brrr::kernels {

// NaN wins, as in max().
template <typename C>
__device__ C larger(C a, C b) {
  return b > a || b != b ? b : a;
}
template <>
__device__ inline float larger(float a, float b) {  // one instruction
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

struct Plus {
  template <typename C>
  __device__ C operator()(C a, C b) const {
    return a + b;
  }
};
struct Larger {
  template <typename C>
  __device__ C operator()(C a, C b) const {
    return larger(a, b);
  }
};

// Lane i joins lane i ^ 16, then ^ 8, ...: both get the same bits, since the operations commute.
template <typename C, typename Join>
__device__ C join_lanes(C value, const Join& join) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value = join(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}

struct WarpTeam {
  static constexpr int kBlock = 128;  // threads of a block of warps that work alone
  static constexpr int kTeams = kBlock / 32;
  static __device__ int place() { return static_cast<int>(threadIdx.x) / 32; }  // of kTeams
  static __device__ int rank() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ int size() { return 32; }
  // Which of all teams this is, and how many there are.
  static __device__ int64_t index() {
    return static_cast<int64_t>(blockIdx.x) * (kBlock / 32) + threadIdx.x / 32;
  }
  static __device__ int64_t count() { return static_cast<int64_t>(gridDim.x) * (kBlock / 32); }

  template <int Numbers, typename C>
  __device__ void sum(C (&values)[Numbers]) {
#pragma unroll
    for (C& value : values) value = join_lanes(value, Plus{});
  }
  template <typename C>
  __device__ C sum(C value) {
    return join_lanes(value, Plus{});
  }
  template <int Numbers, typename C>
  __device__ void max(C (&values)[Numbers]) {
#pragma unroll
    for (C& value : values) value = join_lanes(value, Larger{});
  }
  template <typename C>
  __device__ C max(C value) {
    return join_lanes(value, Larger{});
  }
};

// Two warps of a block of four. They meet at a barrier of their own in shared memory: racecheck loses sight of those of
// the hardware where they have part of a block.
struct PairTeam {
  static constexpr int kBlock = 128, kTeams = 2;
  static __device__ int place() { return static_cast<int>(threadIdx.x) / 64; }
  static __device__ int rank() { return static_cast<int>(threadIdx.x) % 64; }
  static __device__ int size() { return 64; }
  static __device__ int64_t index() {
    return static_cast<int64_t>(blockIdx.x) * kTeams + threadIdx.x / 64;
  }
  static __device__ int64_t count() { return static_cast<int64_t>(gridDim.x) * kTeams; }

  // All of the block; it must pass a barrier before the first sum.
  __device__ PairTeam() {
    __shared__ uint64_t barriers[kTeams];
    barrier_ = static_cast<unsigned>(__cvta_generic_to_shared(barriers + place()));
    if (rank() == 0)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(barrier_) : "memory");
  }

  // Two sets of places take turns, as in BlockTeam.
  template <int Numbers>
  __device__ void sum(float (&values)[Numbers]) {
    __shared__ float parts[kTeams][2][Numbers][2];
    float(&mine)[Numbers][2] = parts[place()][phase_];
    const int warp = rank() / 32;
#pragma unroll
    for (int n = 0; n < Numbers; ++n) {
      values[n] = join_lanes(values[n], Plus{});
      if (rank() % 32 == 0) mine[n][warp] = values[n];
    }
    if (rank() % 32 == 0)
      asm volatile(
          "{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0]; }" ::"r"(barrier_)
          : "memory");
    asm volatile(
        "{ .reg .pred done;\n"
        "again: mbarrier.test_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again; }" ::"r"(barrier_),
        "r"(phase_)
        : "memory");
    phase_ ^= 1;
#pragma unroll
    for (int n = 0; n < Numbers; ++n) values[n] = mine[n][0] + mine[n][1];
  }

 private:
  unsigned barrier_ = 0, phase_ = 0;
};

struct BlockTeam {
  static constexpr int kTeams = 1;
  static __device__ int place() { return 0; }
  static __device__ int rank() { return static_cast<int>(threadIdx.x); }
  static __device__ int size() { return static_cast<int>(blockDim.x); }
  static __device__ int64_t index() { return blockIdx.x; }
  static __device__ int64_t count() { return gridDim.x; }

  // Several numbers at once, for one barrier. Two sets of places take turns: who writes the set of two calls
  // ago has passed the barrier of the last one, so every thread has read it.
  template <int Numbers, typename C, typename Join>
  __device__ void join(C (&values)[Numbers], C identity, const Join& join_two) {
    __shared__ C parts[2][Numbers][32];
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    turn ^= 1;
#pragma unroll
    for (int n = 0; n < Numbers; ++n) {
      values[n] = join_lanes(values[n], join_two);
      if (lane == 0) parts[turn][n][warp] = values[n];
    }
    if (blockDim.x == 32) return;  // the warp is the block
    __syncthreads();
    const int warps = static_cast<int>(blockDim.x) / 32;
#pragma unroll
    for (int n = 0; n < Numbers; ++n)
      values[n] = join_lanes(lane < warps ? parts[turn][n][lane] : identity, join_two);
  }
  template <int Numbers, typename C>
  __device__ void sum(C (&values)[Numbers]) {
    join(values, C(0), Plus{});
  }
  template <typename C>
  __device__ C sum(C value) {
    C values[1] = {value};
    sum(values);
    return values[0];
  }
  template <int Numbers, typename C>
  __device__ void max(C (&values)[Numbers]) {
    join(values, -std::numeric_limits<C>::infinity(), Larger{});
  }
  template <typename C>
  __device__ C max(C value) {
    C values[1] = {value};
    max(values);
    return values[0];
  }

  int turn = 0;
};

}  // namespace brrr::kernels
