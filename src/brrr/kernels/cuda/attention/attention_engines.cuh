// The products of a block of attention, by either of two engines: mma.sync, which every GPU from sm_80 on has, and
// wgmma of Hopper. Both leave results as mma.cuh describes them.
//   score:  c[16 or 64 rows of the unit][N] = x y^T, x and y tiles [.][D]
//   add:    acc[.][D] += weights [.][N] times a tile [N][D]; weights are packed by pack_tile
// Products are started and run on while the threads compute; wait<Left>(c) makes the results in c readable and
// leaves the last `Left` products running. They finish in the order in which they were started.
#pragma once

#include "brrr/kernels/cuda/device/mma.cuh"
#include "brrr/kernels/cuda/device/wgmma.cuh"

namespace brrr::kernels::mma {

// mma.sync: a warp works for itself on 16 rows.
struct WarpEngine {
  static constexpr int kUnitRows = 16;
  template <int D, int Rows>
  static __device__ int offset(int row, int chunk) {
    return tile_offset<D>(row, chunk);
  }
  static __device__ void tiles_are_there() {}

  template <typename T, int D, int XRows, int N>
  static __device__ void score(float (&c)[N / 8][4], const T* x, const T* y) {
    const int row = threadIdx.x / 32 * 16;
#pragma unroll
    for (int n = 0; n < N / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) c[n][i] = 0;
    }
#pragma unroll
    for (int step = 0; step < D / 16; step += 2) {
      uint32_t first[4], second[4];
      load_rows_fragment<D>(first, x, row, step);
      load_rows_fragment<D>(second, x, row, step + 1);
#pragma unroll
      for (int n = 0; n < N / 8; ++n) {
        uint32_t b[4];
        load_columns_fragment<D>(b, y, n * 8, step);
        multiply<T>(c[n], first, b[0], b[1]);
        multiply<T>(c[n], second, b[2], b[3]);
      }
    }
  }

  template <typename T, int D, int N>
  static __device__ void add(float (&acc)[D / 8][4], const uint32_t (&weights)[N / 16][4],
                             const T* tile) {
#pragma unroll
    for (int k = 0; k < N / 16; ++k) {
#pragma unroll
      for (int block = 0; block < D / 16; ++block) {
        uint32_t b[4];
        load_sum_fragment<D>(b, tile, k * 16, block);
        multiply<T>(acc[2 * block], weights[k], b[0], b[1]);
        multiply<T>(acc[2 * block + 1], weights[k], b[2], b[3]);
      }
    }
  }

  template <int Left, int N>
  static __device__ void wait(float (&)[N][4]) {}  // nothing runs in the background
};

// wgmma: four warps work together on 64 rows, straight from shared memory. Tiles have whole blocks of 64
// columns in memory; of the last one only those of D are read.
struct WarpgroupEngine {
  static constexpr int kUnitRows = 64;
  template <int D, int Rows>
  static __device__ int offset(int row, int chunk) {
    return chunk / 8 * (Rows * 64) + row * 64 + ((chunk % 8) ^ (row & 7)) * 8;
  }
  // Which warpgroup of its block a thread is in, in a form that the compiler knows to be the same for a whole warp.
  static __device__ int group_index() {
    return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0);
  }
  // What threads copied must be visible to wgmma, which reads past the ordinary path.
  static __device__ void tiles_are_there() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
#endif
  }

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  // A step of 16 columns is 32 bytes of a 128-byte row; a block of 64 columns has four of them.
  template <int Rows>
  static constexpr uint32_t column_step(int step) {
    return static_cast<uint32_t>(step / 4 * (Rows * 128) + step % 4 * 32);
  }

  template <typename T, int D, int XRows, int N>
  static __device__ void score(float (&c)[N / 8][4], const T* x, const T* y) {
    const wgmma::Descriptor left(x + group_index() * 64 * 64, 0), right(y, 0);
    wgmma::fence();
#pragma unroll
    for (int step = 0; step < D / 16; ++step)
      wgmma::multiply_step<T, N>(c, left.at(column_step<XRows>(step)),
                                 right.at(column_step<N>(step)), step != 0);
    wgmma::commit();
  }

  // Where `is_fresh`, acc is written and not added to: a loop that never waits for all products must not clear it.
  template <typename T, int D, int N>
  static __device__ void add(float (&acc)[D / 8][4], const uint32_t (&weights)[N / 16][4],
                             const T* tile, bool is_fresh = false) {
    const wgmma::Descriptor rows(tile, N * 128);
    wgmma::results_are_there(acc);
    wgmma::fence();
#pragma unroll
    for (int k = 0; k < N / 16; ++k)
      wgmma::add_step<T, D>(acc, weights[k], rows.at(k * 16 * 128), k != 0 || !is_fresh);
    wgmma::commit();
  }

  // c[64][32] = x^T y over the rows of two tiles: 64 columns of x, 32 of y.
  template <typename T, int Rows>
  static __device__ void multiply_rows(float (&c)[4][4], const T* x, const T* y) {
    const wgmma::Descriptor left(x, Rows * 128), right(y, Rows * 128);
    wgmma::fence();
#pragma unroll
    for (int row = 0; row < Rows; row += 16)
      wgmma::multiply_rows_step<T>(c, left.at(row * 128), right.at(row * 128), row != 0);
    wgmma::commit();
  }
  // Counts as a product that is done.
  static __device__ void add_nothing() { wgmma::commit(); }

  template <int Left, int N>
  static __device__ void wait(float (&c)[N][4]) {
    wgmma::wait<Left>();
    wgmma::results_are_there(c);
  }
#else
  template <typename T, int D, int XRows, int N>
  static __device__ void score(float (&)[N / 8][4], const T*, const T*) {
    __trap();  // never launched: is_hopper() asks the device
  }
  template <typename T, int D, int N>
  static __device__ void add(float (&)[D / 8][4], const uint32_t (&)[N / 16][4], const T*,
                             bool = false) {
    __trap();
  }
  template <typename T, int Rows>
  static __device__ void multiply_rows(float (&)[4][4], const T*, const T*) {
    __trap();
  }
  static __device__ void add_nothing() { __trap(); }
  template <int Left, int N>
  static __device__ void wait(float (&)[N][4]) {
    __trap();
  }
#endif
};

}  // namespace brrr::kernels::mma
