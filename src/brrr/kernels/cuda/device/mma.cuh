// Tensor cores by mma.sync, for bf16 and f16 with sums in f32 (sm_80 and newer): fragments of 16 x 16 and
// 16 x 8, tiles in shared memory that cp.async fills and ldmatrix reads without bank conflicts.
//
// In a fragment of results lane l has columns 2 (l % 4) and + 1 of rows l / 4 (values 0, 1) and l / 4 + 8
// (values 2, 3). Two such fragments side by side are, packed, the first operand of the next product: P needs
// no trip through memory between S = Q K^T and O = P V.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "brrr/base/float_formats.h"

namespace brrr::kernels::mma {

// ---- Tiles [rows][D] of 16-bit elements. A row is cut into chunks of 8 elements (16 bytes), and chunks are
// permuted by the row, so that the 8 rows that an ldmatrix reads at once lie in different banks.

template <int D>
__device__ inline int tile_offset(int row, int chunk) {
  static_assert(D % 32 == 0);
  if constexpr (D % 64 == 32)  // every other row begins 64 bytes into the 128 of all banks
    return row * D + (chunk ^ ((row >> 1) & 3)) * 8;
  else
    return row * D + (chunk ^ (row & 7)) * 8;
}

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// 16 bytes to shared memory in the background; zeros where `there` is false, and then nothing is read.
__device__ inline void copy_chunk(void* to, const void* from, bool there) {
  const int bytes = there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes));
}
__device__ inline void copy_word(void* to, const void* from, bool there) {
  const int bytes = there ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes));
}
__device__ inline void finish_copies() { asm volatile("cp.async.commit_group;\n" ::); }
template <int Left>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(Left));
}

__device__ inline void load_matrices(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row)));
}
__device__ inline void load_matrices_transposed(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row)));
}

// The way back, since sm_90: a fragment of 16 rows and 16 columns; lane l gives the address of row l % 16, columns
// 8 (l / 16) and on.
__device__ inline void store_matrices(void* row, const uint32_t (&r)[4]) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};\n" ::"r"(shared_address(row)),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
#else
  __trap();
#endif
}

// First operand: rows [row, row + 16), columns [16 step, 16 step + 16) of a tile.
template <int D, typename T>
__device__ inline void load_rows_fragment(uint32_t (&a)[4], const T* tile, int row, int step) {
  const int lane = threadIdx.x % 32;
  load_matrices(a, tile + tile_offset<D>(row + lane % 16, step * 2 + lane / 16));
}
// Second operand of X Y^T: rows [row, row + 8) of Y's tile, columns of steps `step` and `step + 1`:
// b[0], b[1] for the first and b[2], b[3] for the second.
template <int D, typename T>
__device__ inline void load_columns_fragment(uint32_t (&b)[4], const T* tile, int row, int step) {
  const int lane = threadIdx.x % 32;
  load_matrices(b, tile + tile_offset<D>(row + lane % 8, step * 2 + lane / 8));
}
// Second operand of X Y: rows [row, row + 16) of Y's tile are summed over, columns [16 block, + 16):
// b[0], b[1] for the first 8 of them and b[2], b[3] for the others.
template <int D, typename T>
__device__ inline void load_sum_fragment(uint32_t (&b)[4], const T* tile, int row, int block) {
  const int lane = threadIdx.x % 32;
  load_matrices_transposed(b, tile + tile_offset<D>(row + lane % 16, block * 2 + lane / 16));
}

// ---- Products: c += a b.

template <typename T>
__device__ inline void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
template <>
__device__ inline void multiply<bf16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                      uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ inline void multiply<f16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                     uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two floats as a pair of 16-bit ones, the first in the low half.
template <typename T>
__device__ inline uint32_t pack(float low, float high);
template <>
__device__ inline uint32_t pack<bf16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
template <>
__device__ inline uint32_t pack<f16>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// Results of two neighbouring fragments as a first operand.
template <typename T>
__device__ inline void pack_rows(uint32_t (&a)[4], const float (&left)[4],
                                 const float (&right)[4]) {
  a[0] = pack<T>(left[0], left[1]);
  a[1] = pack<T>(left[2], left[3]);
  a[2] = pack<T>(right[0], right[1]);
  a[3] = pack<T>(right[2], right[3]);
}

__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace brrr::kernels::mma
