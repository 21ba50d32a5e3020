// A product for every dtype and stride: a block computes a tile of 16 x 16 from tiles in shared memory.
// Integers, and machines without cuBLASLt; large float products belong to the library.
#include "brrr/kernels/cuda/device/elements.cuh"
#include "brrr/kernels/cuda/gemm/matmul_cuda.h"

namespace brrr::kernels {
namespace {

constexpr int kTile = 16;

struct Matrix {
  Elements data;
  int64_t row_stride, col_stride;
  explicit Matrix(const Operand& x)
      : data(x), row_stride(x.layout->strides[0]), col_stride(x.layout->strides[1]) {}
};

template <typename C>
__global__ void __launch_bounds__(kTile* kTile)
    plain_product_kernel(Matrix a, Matrix b, Matrix c, const Elements bias, int64_t bias_stride,
                         bool has_bias, int64_t m, int64_t n, int64_t k) {
  __shared__ C rows[kTile][kTile + 1], cols[kTile][kTile + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const int64_t tiles_n = (n + kTile - 1) / kTile, tiles = (m + kTile - 1) / kTile * tiles_n;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t row = tile / tiles_n * kTile + y, col = tile % tiles_n * kTile + x;
    C sum = has_bias && col < n ? bias.load<C>(col * bias_stride) : C(0);
    for (int64_t first = 0; first < k; first += kTile) {
      const int64_t l = first + x, r = first + y;
      rows[y][x] = row < m && l < k ? a.data.load<C>(row * a.row_stride + l * a.col_stride) : C(0);
      cols[y][x] = r < k && col < n ? b.data.load<C>(r * b.row_stride + col * b.col_stride) : C(0);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kTile; ++i) {
        if constexpr (std::integral<C>)
          sum = add_wrapping(sum, mul_wrapping(rows[y][i], cols[i][x]));
        else
          sum = fma(rows[y][i], cols[i][x], sum);
      }
      __syncthreads();
    }
    if (row < m && col < n) c.data.store<C>(row * c.row_stride + col * c.col_stride, sum);
  }
}

}  // namespace

void run_plain_product(const CudaCall& call, const PlainProduct& product) {
  const int64_t m = product.c.shape()[0], n = product.c.shape()[1], k = product.a.shape()[1];
  const int64_t tiles = ((m + kTile - 1) / kTile) * ((n + kTile - 1) / kTile);
  visit_wrapping(compute_type(product.c.dtype), [&]<typename C>() {
    plain_product_kernel<C><<<blocks_for(tiles, 1), dim3(kTile, kTile), 0, call.stream>>>(
        Matrix(product.a), Matrix(product.b), Matrix(product.c),
        Elements(product.bias ? *product.bias : product.c),
        product.bias ? product.bias->layout->strides[0] : 0, product.bias != nullptr, m, n, k);
  });
  cuda::check_launch(call.op.name);
}

}  // namespace brrr::kernels
