// Tensor cores of Hopper: wgmma, which a warpgroup (4 warps, 64 rows) issues together and which reads its
// second operand, and here also its first, straight from shared memory. Only for sm_90a.
//
// Tiles lie as wgmma's 128-byte swizzle wants them: blocks of 64 columns, 128 bytes a row, the eight 16-byte
// chunks of a row permuted by row % 8; each block begins at a multiple of 1024 bytes. Results lie in the
// registers as those of mma.sync do (ops/mma.cuh).
#pragma once

#include <cstdint>

#include "brrr/ops/mma.cuh"

namespace brrr::wgmma {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ inline void fence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ inline void commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
// Waits until all but the last `Left` groups are done.
template <int Left>
__device__ inline void wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(Left) : "memory");
}
// Results may be read from here on: keeps the compiler from reading them before the wait.
template <int N>
__device__ inline void results_are_there(float (&c)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
    asm volatile("" : "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])::"memory");
}

// Where an operand lies, as the instruction reads it: address, strides and swizzle, in units of 16 bytes.
//   along_columns: rows of the tile are rows of the operand, and products are summed over columns
//   along_rows: products are summed over rows of the tile ("transposed")
// Between groups of 8 rows there are 1024 bytes; `block_bytes` lie between blocks of 64 columns.
__device__ inline uint64_t descriptor(const void* tile, uint32_t block_bytes) {
  const uint64_t address = (mma::shared_address(tile) & 0x3ffff) >> 4;
  return address | static_cast<uint64_t>((block_bytes & 0x3ffff) >> 4) << 16 |
         static_cast<uint64_t>(1024 >> 4) << 32 | uint64_t{1} << 62;
}

// clang-format off
#define BRRR_WGMMA_SS_32(TYPE)                                                  \
  asm volatile(                                                                                  \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"                                              \
      "wgmma.mma_async.sync.aligned.m64n32k16.f32." TYPE "." TYPE " {"                             \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"                                                                                  \
      "}, %16, %17, p, 1, 1, 0, 0;\n}\n"                                                          \
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]),                                           \
        "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]),                                           \
        "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),                                           \
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3])                                          \
        : "l"(x), "l"(y), "r"(add))
// clang-format on
// clang-format off
#define BRRR_WGMMA_SS_64(TYPE)                                                  \
  asm volatile(                                                                                  \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                              \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " {"                             \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                                                                  \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"                                                                                  \
      "}, %32, %33, p, 1, 1, 0, 0;\n}\n"                                                                          \
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]),                                           \
        "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]),                                           \
        "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),                                           \
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]),                                           \
        "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]),                                           \
        "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),                                           \
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]),                                           \
        "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3])                                          \
        : "l"(x), "l"(y), "r"(add))
// clang-format on
// clang-format off
#define BRRR_WGMMA_RS_64(TYPE)                                                  \
  asm volatile(                                                                                  \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                              \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " {"                             \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                                                                  \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"                                                                                  \
      "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}\n"                                                                          \
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]),                                           \
        "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]),                                           \
        "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),                                           \
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]),                                           \
        "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]),                                           \
        "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),                                           \
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]),                                           \
        "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3])                                          \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(y), "r"(add))
// clang-format on
// clang-format off
#define BRRR_WGMMA_SS_128(TYPE)                                                  \
  asm volatile(                                                                                  \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"                                              \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE " {"                             \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                                                                  \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                                                                                  \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                                                                  \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"                                                                                  \
      "}, %64, %65, p, 1, 1, 0, 0;\n}\n"                                                                          \
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]),                                           \
        "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]),                                           \
        "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),                                           \
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]),                                           \
        "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]),                                           \
        "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),                                           \
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]),                                           \
        "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]),                                           \
        "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]), "+f"(c[8][3]),                                           \
        "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]),                                           \
        "+f"(c[10][0]), "+f"(c[10][1]), "+f"(c[10][2]), "+f"(c[10][3]),                                           \
        "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3]),                                           \
        "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]),                                           \
        "+f"(c[13][0]), "+f"(c[13][1]), "+f"(c[13][2]), "+f"(c[13][3]),                                           \
        "+f"(c[14][0]), "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]),                                           \
        "+f"(c[15][0]), "+f"(c[15][1]), "+f"(c[15][2]), "+f"(c[15][3])                                          \
        : "l"(x), "l"(y), "r"(add))
// clang-format on
// clang-format off
#define BRRR_WGMMA_RS_128(TYPE)                                                  \
  asm volatile(                                                                                  \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"                                              \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE " {"                             \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                                                                  \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                                                                                  \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                                                                  \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"                                                                                  \
      "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}\n"                                                                          \
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]),                                           \
        "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]),                                           \
        "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),                                           \
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]),                                           \
        "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]),                                           \
        "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),                                           \
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]),                                           \
        "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]),                                           \
        "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]), "+f"(c[8][3]),                                           \
        "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]),                                           \
        "+f"(c[10][0]), "+f"(c[10][1]), "+f"(c[10][2]), "+f"(c[10][3]),                                           \
        "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3]),                                           \
        "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]),                                           \
        "+f"(c[13][0]), "+f"(c[13][1]), "+f"(c[13][2]), "+f"(c[13][3]),                                           \
        "+f"(c[14][0]), "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]),                                           \
        "+f"(c[15][0]), "+f"(c[15][1]), "+f"(c[15][2]), "+f"(c[15][3])                                          \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(y), "r"(add))
// clang-format on

// c (+)= x y^T for one step of 16 columns; both operands in shared memory.
template <typename T, int N>
__device__ inline void multiply_step(float (&c)[N / 8][4], uint64_t x, uint64_t y, int add) {
  static_assert(N == 32 || N == 64 || N == 128);
  if constexpr (N == 32 && T::kMantissaBits == 7) {
    BRRR_WGMMA_SS_32("bf16");
  } else if constexpr (N == 32) {
    BRRR_WGMMA_SS_32("f16");
  } else if constexpr (N == 64 && T::kMantissaBits == 7) {
    BRRR_WGMMA_SS_64("bf16");
  } else if constexpr (N == 64) {
    BRRR_WGMMA_SS_64("f16");
  } else if constexpr (T::kMantissaBits == 7) {
    BRRR_WGMMA_SS_128("bf16");
  } else {
    BRRR_WGMMA_SS_128("f16");
  }
}

// c += a y for one step of 16 rows of y; a is in registers.
template <typename T, int N>
__device__ inline void add_step(float (&c)[N / 8][4], const uint32_t (&a)[4], uint64_t y) {
  static_assert(N == 64 || N == 128);
  constexpr int add = 1;
  if constexpr (N == 64 && T::kMantissaBits == 7) {
    BRRR_WGMMA_RS_64("bf16");
  } else if constexpr (N == 64) {
    BRRR_WGMMA_RS_64("f16");
  } else if constexpr (T::kMantissaBits == 7) {
    BRRR_WGMMA_RS_128("bf16");
  } else {
    BRRR_WGMMA_RS_128("f16");
  }
}

#endif

}  // namespace brrr::wgmma
