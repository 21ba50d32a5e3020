// Tensor cores of Hopper: wgmma, which a warpgroup (4 warps, 64 rows) issues together and which reads its
// second operand, and here also its first, straight from shared memory. Only for sm_90a.
//
// Tiles lie as wgmma's 128-byte swizzle wants them: blocks of 64 columns, 128 bytes a row, the eight 16-byte
// chunks of a row permuted by row % 8; each block begins at a multiple of 1024 bytes. Results lie in the
// registers as those of mma.sync do (kernels/cuda/device/mma.cuh).
#pragma once

#include <cstdint>

#include "brrr/kernels/cuda/device/mma.cuh"

namespace brrr::kernels::wgmma {

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
struct Descriptor {
  uint32_t low;  // address and distance of blocks

  __device__ Descriptor(const void* tile, uint32_t block_bytes)
      : low((mma::shared_address(tile) & 0x3ffff) >> 4 | ((block_bytes & 0x3ffff) >> 4) << 16) {}
  // The same `bytes` further on: one addition, where an address anew would take ten.
  __device__ uint64_t at(uint32_t bytes) const {
    constexpr uint32_t kRowGroupsAndSwizzle = 1024 >> 4 | 1u << 30;
    return static_cast<uint64_t>(kRowGroupsAndSwizzle) << 32 | (low + (bytes >> 4));
  }
};

// An instruction names each of its registers, in the text and as an operand: N / 2 results, whose numbers come
// first, then the operands. Lists grow from size to size.
// clang-format off
#define BRRR_NAMES_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define BRRR_NAMES_48 BRRR_NAMES_32 \
  ", %16, %17, %18, %19, %20, %21, %22, %23"
#define BRRR_NAMES_64 BRRR_NAMES_48 \
  ", %24, %25, %26, %27, %28, %29, %30, %31"
#define BRRR_NAMES_96 BRRR_NAMES_64 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define BRRR_NAMES_128 BRRR_NAMES_96 \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define BRRR_NAMES_192 BRRR_NAMES_128 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define BRRR_NAMES_256 BRRR_NAMES_192 \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define BRRR_FOUR(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define BRRR_SIXTEEN(n) BRRR_FOUR(n), BRRR_FOUR(n + 1), BRRR_FOUR(n + 2), BRRR_FOUR(n + 3)
#define BRRR_RESULTS_32 BRRR_SIXTEEN(0)
#define BRRR_RESULTS_48 BRRR_SIXTEEN(0), BRRR_FOUR(4), BRRR_FOUR(5)
#define BRRR_RESULTS_64 BRRR_SIXTEEN(0), BRRR_SIXTEEN(4)
#define BRRR_RESULTS_96 BRRR_RESULTS_64, BRRR_SIXTEEN(8)
#define BRRR_RESULTS_128 BRRR_RESULTS_96, BRRR_SIXTEEN(12)
#define BRRR_RESULTS_192 BRRR_RESULTS_128, BRRR_SIXTEEN(16), BRRR_SIXTEEN(20)
#define BRRR_RESULTS_256 BRRR_RESULTS_192, BRRR_SIXTEEN(24), BRRR_SIXTEEN(28)

// `operands` is the rest of the text, `add` the number of the register that says whether c is added to.
#define BRRR_WGMMA(N, TYPE, add, operands, ...)                                                  \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " add ", 0;\n"                                   \
               "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {"              \
               BRRR_NAMES_##N "}, " operands ";\n}\n"                                            \
               : BRRR_RESULTS_##N : __VA_ARGS__)
// Both operands in shared memory, products summed over columns of both.
#define BRRR_WGMMA_SHARED(N, TYPE, add, x_and_y)                                                 \
  BRRR_WGMMA(N, TYPE, add, x_and_y ", p, 1, 1, 0, 0", "l"(x), "l"(y), "r"(add_to_c))
// Both operands in shared memory, products summed over rows of both.
#define BRRR_WGMMA_SHARED_ROWS(N, TYPE, add, x_and_y)                                            \
  BRRR_WGMMA(N, TYPE, add, x_and_y ", p, 1, 1, 1, 1", "l"(x), "l"(y), "r"(add_to_c))
// The first in registers; products summed over rows of the second.
#define BRRR_WGMMA_REGISTERS(N, TYPE, add, a_and_y)                                              \
  BRRR_WGMMA(N, TYPE, add, a_and_y ", p, 1, 1, 1",                                               \
             "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(y), "r"(add_to_c))
// clang-format on

// c (+)= x y^T for one step of 16 columns; both operands in shared memory.
template <typename T, int N>
__device__ inline void multiply_step(float (&c)[N / 8][4], uint64_t x, uint64_t y, int add_to_c) {
  static_assert(N == 32 || N == 48 || N == 64);
  constexpr bool kIsBf16 = T::kMantissaBits == 7;
  if constexpr (N == 32 && kIsBf16) {
    BRRR_WGMMA_SHARED(32, "bf16", "%18", "%16, %17");
  } else if constexpr (N == 32) {
    BRRR_WGMMA_SHARED(32, "f16", "%18", "%16, %17");
  } else if constexpr (N == 48 && kIsBf16) {
    BRRR_WGMMA_SHARED(48, "bf16", "%26", "%24, %25");
  } else if constexpr (N == 48) {
    BRRR_WGMMA_SHARED(48, "f16", "%26", "%24, %25");
  } else if constexpr (kIsBf16) {
    BRRR_WGMMA_SHARED(64, "bf16", "%34", "%32, %33");
  } else {
    BRRR_WGMMA_SHARED(64, "f16", "%34", "%32, %33");
  }
}

// c (+)= x^T y for one step of 16 rows of both; 64 columns of x, 32 of y.
template <typename T>
__device__ inline void multiply_rows_step(float (&c)[4][4], uint64_t x, uint64_t y, int add_to_c) {
  if constexpr (T::kMantissaBits == 7) {
    BRRR_WGMMA_SHARED_ROWS(32, "bf16", "%18", "%16, %17");
  } else {
    BRRR_WGMMA_SHARED_ROWS(32, "f16", "%18", "%16, %17");
  }
}

// c (+)= a y for one step of 16 rows of y; a is in registers.
template <typename T, int N>
__device__ inline void add_step(float (&c)[N / 8][4], const uint32_t (&a)[4], uint64_t y,
                                int add_to_c) {
  static_assert(N == 64 || N == 96 || N == 128 || N == 192 || N == 256);
  constexpr bool kIsBf16 = T::kMantissaBits == 7;
  if constexpr (N == 64 && kIsBf16) {
    BRRR_WGMMA_REGISTERS(64, "bf16", "%37", "{%32, %33, %34, %35}, %36");
  } else if constexpr (N == 64) {
    BRRR_WGMMA_REGISTERS(64, "f16", "%37", "{%32, %33, %34, %35}, %36");
  } else if constexpr (N == 96 && kIsBf16) {
    BRRR_WGMMA_REGISTERS(96, "bf16", "%53", "{%48, %49, %50, %51}, %52");
  } else if constexpr (N == 96) {
    BRRR_WGMMA_REGISTERS(96, "f16", "%53", "{%48, %49, %50, %51}, %52");
  } else if constexpr (N == 128 && kIsBf16) {
    BRRR_WGMMA_REGISTERS(128, "bf16", "%69", "{%64, %65, %66, %67}, %68");
  } else if constexpr (N == 128) {
    BRRR_WGMMA_REGISTERS(128, "f16", "%69", "{%64, %65, %66, %67}, %68");
  } else if constexpr (N == 192 && kIsBf16) {
    BRRR_WGMMA_REGISTERS(192, "bf16", "%101", "{%96, %97, %98, %99}, %100");
  } else if constexpr (N == 192) {
    BRRR_WGMMA_REGISTERS(192, "f16", "%101", "{%96, %97, %98, %99}, %100");
  } else if constexpr (kIsBf16) {
    BRRR_WGMMA_REGISTERS(256, "bf16", "%133", "{%128, %129, %130, %131}, %132");
  } else {
    BRRR_WGMMA_REGISTERS(256, "f16", "%133", "{%128, %129, %130, %131}, %132");
  }
}

#undef BRRR_NAMES_32
#undef BRRR_NAMES_48
#undef BRRR_NAMES_64
#undef BRRR_NAMES_96
#undef BRRR_NAMES_128
#undef BRRR_NAMES_192
#undef BRRR_NAMES_256
#undef BRRR_FOUR
#undef BRRR_SIXTEEN
#undef BRRR_RESULTS_32
#undef BRRR_RESULTS_48
#undef BRRR_RESULTS_64
#undef BRRR_RESULTS_96
#undef BRRR_RESULTS_128
#undef BRRR_RESULTS_192
#undef BRRR_RESULTS_256
#undef BRRR_WGMMA
#undef BRRR_WGMMA_SHARED
#undef BRRR_WGMMA_SHARED_ROWS
#undef BRRR_WGMMA_REGISTERS

#endif

}  // namespace brrr::kernels::wgmma
