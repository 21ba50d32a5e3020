#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include "brrr/plan/ladder/ladder_kernels_cuda.h"

namespace brrr::plan::ladder {
namespace {

constexpr int kSide = 16;       // threads of a block along each axis, without sharing
constexpr int kTile = 32;       // of the tiles that a block shares
constexpr int kFragment = 16;   // of a product on matrix units
constexpr int kWarpTile = 32;   // results of a warp along each axis: 2 x 2 fragments
constexpr int kBlockWarps = 4;  // 2 x 2 of them

__global__ void naive_kernel(GpuMatrices<float> m) {
  const int64_t row = int64_t{blockIdx.y} * kSide + threadIdx.y,
                column = int64_t{blockIdx.x} * kSide + threadIdx.x;
  float sum = 0;
  for (int64_t k = 0; k < m.n; ++k) sum = fmaf(m.a[row * m.n + k], m.b[k * m.n + column], sum);
  m.c[row * m.n + column] = sum;
}

__global__ void shared_kernel(GpuMatrices<float> m) {
  __shared__ float a[kTile][kTile], b[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int64_t row = int64_t{blockIdx.y} * kTile + y, column = int64_t{blockIdx.x} * kTile + x;
  float sum = 0;
  for (int64_t first = 0; first < m.n; first += kTile) {
    a[y][x] = m.a[row * m.n + first + x];
    b[y][x] = m.b[(first + y) * m.n + column];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTile; ++k) sum = fmaf(a[y][k], b[k][x], sum);
    __syncthreads();
  }
  m.c[row * m.n + column] = sum;
}

constexpr int kBig = 128;      // results of a block along each axis, from here on
constexpr int kThreads = 256;  // of such a block
constexpr int kDepth = 8;      // of k in one tile of the f32 kernel
constexpr int kOwn = 8;        // results of a thread along each axis

// A thread's rows and columns are 4 here and 4 half a tile further, so that neighbours read neighbouring banks.
__device__ int own_place(int thread, int i) { return thread * 4 + (i / 4) * (kBig / 2) + i % 4; }

__global__ void __launch_bounds__(kThreads) register_kernel(GpuMatrices<float> m) {
  __shared__ alignas(16) float a[kDepth][kBig], b[kDepth][kBig];  // A is stored transposed
  const int thread = threadIdx.x, x = thread % 16, y = thread / 16;
  const int64_t row = int64_t{blockIdx.y} * kBig, column = int64_t{blockIdx.x} * kBig;
  float sums[kOwn][kOwn] = {};
  for (int64_t first = 0; first < m.n; first += kDepth) {
    const int a_row = thread / 2, a_k = thread % 2 * 4, b_k = thread / 32,
              b_column = thread % 32 * 4;
    const float4 left = *reinterpret_cast<const float4*>(m.a + (row + a_row) * m.n + first + a_k);
    const float4 right =
        *reinterpret_cast<const float4*>(m.b + (first + b_k) * m.n + column + b_column);
    a[a_k][a_row] = left.x, a[a_k + 1][a_row] = left.y;
    a[a_k + 2][a_row] = left.z, a[a_k + 3][a_row] = left.w;
    *reinterpret_cast<float4*>(&b[b_k][b_column]) = right;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float rows[kOwn], columns[kOwn];
#pragma unroll
      for (int i = 0; i < kOwn; ++i)
        rows[i] = a[k][own_place(y, i)], columns[i] = b[k][own_place(x, i)];
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
#pragma unroll
        for (int j = 0; j < kOwn; ++j) sums[i][j] = fmaf(rows[i], columns[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
#pragma unroll
    for (int j = 0; j < kOwn; ++j)
      m.c[(row + own_place(y, i)) * m.n + column + own_place(x, j)] = sums[i][j];
  }
}

__global__ void tensor_core_kernel(GpuMatrices<bf16> m) {
  using namespace nvcuda::wmma;
  using Rows = fragment<matrix_a, kFragment, kFragment, kFragment, __nv_bfloat16, row_major>;
  using Columns = fragment<matrix_b, kFragment, kFragment, kFragment, __nv_bfloat16, row_major>;
  const auto* const a = reinterpret_cast<const __nv_bfloat16*>(m.a);
  const auto* const b = reinterpret_cast<const __nv_bfloat16*>(m.b);
  const int warp = threadIdx.x / 32;
  const int64_t row = (int64_t{blockIdx.y} * 2 + warp / 2) * kWarpTile,
                column = (int64_t{blockIdx.x} * 2 + warp % 2) * kWarpTile;
  fragment<accumulator, kFragment, kFragment, kFragment, float> sums[2][2];
  for (auto& line : sums) {
    for (auto& sum : line) fill_fragment(sum, 0.0F);
  }
  for (int64_t k = 0; k < m.n; k += kFragment) {
    Rows rows[2];
    Columns columns[2];
    for (int i = 0; i < 2; ++i) {
      load_matrix_sync(rows[i], a + (row + i * kFragment) * m.n + k, static_cast<unsigned>(m.n));
      load_matrix_sync(columns[i], b + k * m.n + column + i * kFragment,
                       static_cast<unsigned>(m.n));
    }
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) mma_sync(sums[i][j], rows[i], columns[j], sums[i][j]);
    }
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j)
      store_matrix_sync(m.c + (row + i * kFragment) * m.n + column + j * kFragment, sums[i][j],
                        static_cast<unsigned>(m.n), mem_row_major);
  }
}

constexpr int kStage = 32;               // of k in one stage
constexpr int kPad = 8;                  // elements between rows, so that rows start in other banks
constexpr int kChunk = 8;                // elements of a copy of 16 bytes
constexpr int kRowsOf = 4, kColsOf = 2;  // fragments of a warp: 64 x 32 results, 2 x 4 warps

struct Stage {
  alignas(32) __nv_bfloat16 a[kBig][kStage + kPad];
  alignas(32) __nv_bfloat16 b[kStage][kBig + kPad];
};

__device__ void fetch(Stage& stage, const GpuMatrices<bf16>& m, int64_t row, int64_t column,
                      int64_t first) {
  constexpr int kCopies = kBig * kStage / kChunk;
  for (int copy = static_cast<int>(threadIdx.x); copy < kCopies; copy += kThreads) {
    const int a_row = copy / (kStage / kChunk), a_k = copy % (kStage / kChunk) * kChunk;
    __pipeline_memcpy_async(&stage.a[a_row][a_k], m.a + (row + a_row) * m.n + first + a_k, 16);
    const int b_k = copy / (kBig / kChunk), b_column = copy % (kBig / kChunk) * kChunk;
    __pipeline_memcpy_async(&stage.b[b_k][b_column], m.b + (first + b_k) * m.n + column + b_column,
                            16);
  }
  __pipeline_commit();
}

__global__ void __launch_bounds__(kThreads) staged_kernel(GpuMatrices<bf16> m) {
  using namespace nvcuda::wmma;
  __shared__ Stage stages[2];
  const int warp = threadIdx.x / 32, warp_row = warp / 4 * (kRowsOf * kFragment),
            warp_column = warp % 4 * (kColsOf * kFragment);
  const int64_t row = int64_t{blockIdx.y} * kBig, column = int64_t{blockIdx.x} * kBig;
  fragment<accumulator, kFragment, kFragment, kFragment, float> sums[kRowsOf][kColsOf];
  for (auto& line : sums) {
    for (auto& sum : line) fill_fragment(sum, 0.0F);
  }
  const int64_t steps = m.n / kStage;
  fetch(stages[0], m, row, column, 0);
  for (int64_t step = 0; step < steps; ++step) {
    const bool has_next = step + 1 < steps;
    if (has_next) fetch(stages[(step + 1) % 2], m, row, column, (step + 1) * kStage);
    __pipeline_wait_prior(has_next ? 1 : 0);
    __syncthreads();
    const Stage& stage = stages[step % 2];
#pragma unroll
    for (int k = 0; k < kStage; k += kFragment) {
      fragment<matrix_a, kFragment, kFragment, kFragment, __nv_bfloat16, row_major> rows[kRowsOf];
      fragment<matrix_b, kFragment, kFragment, kFragment, __nv_bfloat16, row_major>
          columns[kColsOf];
      for (int i = 0; i < kRowsOf; ++i)
        load_matrix_sync(rows[i], &stage.a[warp_row + i * kFragment][k], kStage + kPad);
      for (int j = 0; j < kColsOf; ++j)
        load_matrix_sync(columns[j], &stage.b[k][warp_column + j * kFragment], kBig + kPad);
      for (int i = 0; i < kRowsOf; ++i) {
        for (int j = 0; j < kColsOf; ++j) mma_sync(sums[i][j], rows[i], columns[j], sums[i][j]);
      }
    }
    __syncthreads();  // before the stage is written again
  }
  for (int i = 0; i < kRowsOf; ++i) {
    for (int j = 0; j < kColsOf; ++j)
      store_matrix_sync(
          m.c + (row + warp_row + i * kFragment) * m.n + column + warp_column + j * kFragment,
          sums[i][j], static_cast<unsigned>(m.n), mem_row_major);
  }
}

dim3 blocks_of(int64_t n, int side) {
  const auto along = static_cast<unsigned>(n / side);
  return {along, along};
}

}  // namespace

void gpu_naive(const GpuMatrices<float>& m, cuda::Stream stream) {
  naive_kernel<<<blocks_of(m.n, kSide), dim3(kSide, kSide), 0, stream>>>(m);
  cuda::check_launch("ladder: naive");
}

void gpu_shared(const GpuMatrices<float>& m, cuda::Stream stream) {
  shared_kernel<<<blocks_of(m.n, kTile), dim3(kTile, kTile), 0, stream>>>(m);
  cuda::check_launch("ladder: shared memory");
}

void gpu_registers(const GpuMatrices<float>& m, cuda::Stream stream) {
  register_kernel<<<blocks_of(m.n, kBig), kThreads, 0, stream>>>(m);
  cuda::check_launch("ladder: registers");
}

void gpu_staged(const GpuMatrices<bf16>& m, cuda::Stream stream) {
  staged_kernel<<<blocks_of(m.n, kBig), kThreads, 0, stream>>>(m);
  cuda::check_launch("ladder: staged");
}

void gpu_tensor_cores(const GpuMatrices<bf16>& m, cuda::Stream stream) {
  tensor_core_kernel<<<blocks_of(m.n, 2 * kWarpTile), kBlockWarps * 32, 0, stream>>>(m);
  cuda::check_launch("ladder: tensor cores");
}

}  // namespace brrr::plan::ladder
