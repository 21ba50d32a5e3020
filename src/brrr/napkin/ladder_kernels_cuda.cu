#include <cuda_bf16.h>
#include <mma.h>

#include "brrr/napkin/ladder_kernels_cuda.h"

namespace brrr::ladder {
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

void gpu_tensor_cores(const GpuMatrices<bf16>& m, cuda::Stream stream) {
  tensor_core_kernel<<<blocks_of(m.n, 2 * kWarpTile), kBlockWarps * 32, 0, stream>>>(m);
  cuda::check_launch("ladder: tensor cores");
}

}  // namespace brrr::ladder
