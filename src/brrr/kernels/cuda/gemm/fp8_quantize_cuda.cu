// Quantising reads x once: a block of threads has 128 x 128 elements, writes them in 8 bits as they lie, and from shared
// memory transposed, both in runs of 128 bytes. The largest magnitude is a maximum of the bits of floats, which are
// ordered like these: atomics on them give the same number in any order.
#include <cuda_fp8.h>

#include "brrr/kernels/cuda/codegen/element_access.h"
#include "brrr/kernels/cuda/device/elements.cuh"
#include "brrr/kernels/cuda/gemm/fp8_cuda.h"

namespace brrr::kernels {
namespace {

constexpr int kTile = 128;               // rows and columns of a block
constexpr int kChunk = 16;               // 8-bit elements of an access
constexpr int kChunks = kTile / kChunk;  // of a row of a tile
constexpr int kRowStep = kBlockThreads / kChunks;
constexpr int kSteps = kTile / kRowStep;  // chunks of a thread
constexpr uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;

// What a call asks for; null: not that.
struct Quantized {
  uint8_t *plain = nullptr, *turned = nullptr;
  uint32_t* amax = nullptr;  // bits of a float
};

struct Matrix {
  int64_t rows, cols;
};

// Where chunks of x lie: in rows a stride apart, or wherever its axes say.
struct RowChunks {
  int64_t row_stride;
  __device__ int64_t position(int64_t row, int64_t col, int64_t) const {
    return row * row_stride + col;
  }
};
struct WalkedChunks {
  Walk walk;  // counted in chunks
  __device__ int64_t position(int64_t row, int64_t col, int64_t cols) const {
    return walk.position((row * cols + col) / kChunk) * kChunk;
  }
};

__device__ uint32_t magnitude_bits(float value) { return __float_as_uint(value) & kMagnitude; }

// Four numbers that are finite: the instruction makes infinity the largest number, which e5m2 has not to.
template <typename F8>
__device__ uint32_t convert_finite(const float (&v)[4]) {
  constexpr __nv_fp8_interpretation_t kind = std::is_same_v<F8, f8e4m3> ? __NV_E4M3 : __NV_E5M2;
  const uint32_t low = __nv_cvt_float2_to_fp8x2(make_float2(v[0], v[1]), __NV_SATFINITE, kind),
                 high = __nv_cvt_float2_to_fp8x2(make_float2(v[2], v[3]), __NV_SATFINITE, kind);
  return low | high << 16;
}

template <typename F8, typename T>
__device__ uint4 quantize_chunk(const device::Pack<T, kChunk>& pack, float scale,
                                uint32_t& largest) {
  float scaled[kChunk / 4][4];
  uint32_t peak = 0;
#pragma unroll
  for (int i = 0; i < kChunk; ++i) {
    const float value = device::convert<float>(pack.at[i]);
    largest = max(largest, magnitude_bits(value));
    scaled[i / 4][i % 4] = value * scale;
    peak = max(peak, magnitude_bits(scaled[i / 4][i % 4]));
  }
  uint32_t words[kChunk / 4];
#pragma unroll
  for (int w = 0; w < kChunk / 4; ++w) {
    words[w] = convert_finite<F8>(scaled[w]);
    if (peak >= kInfinity) {  // or NaN: rare, and as the cpu has them
      words[w] = 0;
      for (int i = 0; i < 4; ++i)
        words[w] |= static_cast<uint32_t>(F8(scaled[w][i]).bits) << (8 * i);
    }
  }
  return {words[0], words[1], words[2], words[3]};
}

// The largest of a block goes to memory, unless a larger one is there.
__device__ void note_largest(uint32_t largest, uint32_t* amax) {
  __shared__ uint32_t warps[kBlockThreads / 32];
  largest = __reduce_max_sync(~0U, largest);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = largest;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (const uint32_t other : warps) largest = max(largest, other);
  if (largest > *static_cast<volatile uint32_t*>(amax)) atomicMax(amax, largest);
}

// Rows of 4 bytes each become columns.
__device__ void turn_bytes(const uint32_t (&rows)[4], uint32_t (&cols)[4]) {
  const uint32_t a = __byte_perm(rows[0], rows[1], 0x5140),
                 b = __byte_perm(rows[2], rows[3], 0x5140),
                 c = __byte_perm(rows[0], rows[1], 0x7362),
                 d = __byte_perm(rows[2], rows[3], 0x7362);
  cols[0] = __byte_perm(a, b, 0x5410);
  cols[1] = __byte_perm(a, b, 0x7632);
  cols[2] = __byte_perm(c, d, 0x5410);
  cols[3] = __byte_perm(c, d, 0x7632);
}

// Chunks of 16 rows lie in other columns of shared memory, so that neither rows nor columns meet in a bank.
__device__ int place_in_tile(int row, int chunk) {
  return row * kChunks + (chunk ^ (row / kChunk % kChunks));
}

// A warp has 16 columns, a thread 4 of them in 16 rows; eight threads write 128 bytes of a column.
__device__ void write_turned(const uint4* tile, const Matrix& x, uint8_t* turned, int64_t first_row,
                             int64_t first_col) {
  const int chunk = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = lane % kChunks * kChunk, word = lane / kChunks;
  if (first_row + row >= x.rows || first_col + chunk * kChunk >= x.cols) return;
  uint32_t cols[4][kChunk / 4];  // by column, then four rows each
#pragma unroll
  for (int w = 0; w < kChunk / 4; ++w) {
    uint32_t rows[4], turned_words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      rows[i] =
          reinterpret_cast<const uint32_t*>(&tile[place_in_tile(row + 4 * w + i, chunk)])[word];
    turn_bytes(rows, turned_words);
#pragma unroll
    for (int i = 0; i < 4; ++i) cols[i][w] = turned_words[i];
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t col = first_col + chunk * kChunk + 4 * word + i;
    *reinterpret_cast<uint4*>(turned + col * x.rows + first_row + row) = {cols[i][0], cols[i][1],
                                                                          cols[i][2], cols[i][3]};
  }
}

template <typename T, typename F8, typename Chunks>
__global__ void __launch_bounds__(kBlockThreads)
    quantize_tiles_kernel(const T* data, Chunks chunks, Matrix x, Elements scale, Quantized out) {
  __shared__ uint4 tile[kTile * kChunks];
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kTile,
                first_col = static_cast<int64_t>(blockIdx.x) * kTile;
  const int chunk = static_cast<int>(threadIdx.x) % kChunks,
            row_in_step = static_cast<int>(threadIdx.x) / kChunks;
  const int64_t col = first_col + chunk * kChunk;
  device::Pack<T, kChunk> packs[kSteps];
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int64_t row = first_row + row_in_step + s * kRowStep;
    if (row < x.rows && col < x.cols)
      packs[s] = device::load_pack<kChunk>(data + chunks.position(row, col, x.cols));
  }
  const float factor = scale.load<float>(0);
  uint32_t largest = 0;
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int row_in_tile = row_in_step + s * kRowStep;
    const int64_t row = first_row + row_in_tile;
    if (row >= x.rows || col >= x.cols) continue;
    const uint4 bits = quantize_chunk<F8>(packs[s], factor, largest);
    if (out.plain) *reinterpret_cast<uint4*>(out.plain + row * x.cols + col) = bits;
    if (out.turned) tile[place_in_tile(row_in_tile, chunk)] = bits;
  }
  __syncthreads();
  if (out.turned) write_turned(tile, x, out.turned, first_row, first_col);
  if (out.amax) note_largest(largest, out.amax);
}

// Any strides and sizes, an element at a time.
__global__ void __launch_bounds__(kBlockThreads)
    quantize_any_kernel(Elements x, Walk walk, Elements scale, Matrix sizes, DType dtype,
                        Quantized out) {
  const int64_t count = sizes.rows * sizes.cols,
                step = static_cast<int64_t>(gridDim.x) * kBlockThreads;
  const float factor = scale.load<float>(0);
  uint32_t largest = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < count;
       i += step) {
    const float value = x.load<float>(walk.position(i));
    largest = max(largest, magnitude_bits(value));
    if (out.plain) store_element<float>(out.plain, dtype, i, value * factor);
    if (out.turned)
      store_element<float>(out.turned, dtype, i % sizes.cols * sizes.rows + i / sizes.cols,
                           value * factor);
  }
  if (out.amax) note_largest(largest, out.amax);
}

Quantized outputs_of(const CudaCall& call) {
  Quantized out;
  int next = 0;
  const auto take = [&] { return Elements(call.output(next++)).as<uint8_t>(); };
  if (call.attrs.flag("plain")) out.plain = take();
  if (call.attrs.flag("turned")) out.turned = take();
  if (call.attrs.flag("amax")) out.amax = reinterpret_cast<uint32_t*>(take());
  return out;
}

bool is_aligned_at(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

bool has_whole_chunks(const Matrix& x, const Quantized& out) {
  return x.rows % kChunk == 0 && x.cols % kChunk == 0 && is_aligned_at(out.plain) &&
         is_aligned_at(out.turned) && (x.rows + kTile - 1) / kTile <= UINT16_MAX;
}

int64_t row_stride_of(const Layout& layout, const Matrix& sizes) {
  return layout.is_contiguous() ? sizes.cols : layout.strides[0];
}

bool lies_in_rows(const Operand& x, const Matrix& sizes) {
  const Layout& layout = *x.layout;
  const bool has_rows =
      layout.is_contiguous() || (layout.rank() == 2 && layout.shape[1] == sizes.cols &&
                                 layout.strides[1] == 1 && layout.strides[0] > 0);
  return has_rows && is_aligned_at(Elements(x).base) &&
         storage_bytes(x.dtype, row_stride_of(layout, sizes)) % 16 == 0;
}

bool lies_in_chunks(const Operand& x) {
  const Layout& layout = *x.layout;
  return is_aligned_at(Elements(x).base) && layout.strides.back() == 1 &&
         layout.shape.back() % kChunk == 0 &&
         std::all_of(layout.strides.begin(), layout.strides.end() - 1,
                     [](int64_t stride) { return stride % kChunk == 0; });
}

template <typename T, typename Chunks>
void run_tiles(const CudaCall& call, const Chunks& chunks, const Matrix& sizes,
               const Quantized& out) {
  const dim3 grid(static_cast<unsigned>((sizes.cols + kTile - 1) / kTile),
                  static_cast<unsigned>((sizes.rows + kTile - 1) / kTile));
  const T* const data = Elements(call.input(0)).as<const T>();
  const Elements scale(call.input(1));
  if (call.attrs.get<DType>("dtype") == DType::f8e4m3)
    quantize_tiles_kernel<T, f8e4m3>
        <<<grid, kBlockThreads, 0, call.stream>>>(data, chunks, sizes, scale, out);
  else
    quantize_tiles_kernel<T, f8e5m2>
        <<<grid, kBlockThreads, 0, call.stream>>>(data, chunks, sizes, scale, out);
}

template <typename Chunks>
void run_tiles(const CudaCall& call, const Chunks& chunks, const Matrix& sizes,
               const Quantized& out) {
  switch (call.input(0).dtype) {
    case DType::f32: return run_tiles<float>(call, chunks, sizes, out);
    case DType::bf16: return run_tiles<bf16>(call, chunks, sizes, out);
    default: return run_tiles<f16>(call, chunks, sizes, out);
  }
}

}  // namespace

void quantize_cuda(const CudaCall& call) {
  const Operand& x = call.input(0);
  const int64_t cols = call.attrs.integer("columns");
  const Matrix sizes{.rows = x.count() / cols, .cols = cols};
  const Quantized out = outputs_of(call);
  if (out.amax) cuda::fill_zero(out.amax, sizeof(*out.amax), call.stream);
  if (has_whole_chunks(sizes, out) && lies_in_rows(x, sizes)) {
    run_tiles(call, RowChunks{row_stride_of(*x.layout, sizes)}, sizes, out);
  } else if (has_whole_chunks(sizes, out) && lies_in_chunks(x)) {
    run_tiles(call, WalkedChunks{walk_of(in_chunks(*x.layout, kChunk))}, sizes, out);
  } else {
    quantize_any_kernel<<<blocks_for(x.count()), kBlockThreads, 0, call.stream>>>(
        Elements(x), walk_of(*x.layout), Elements(call.input(1)), sizes,
        call.attrs.get<DType>("dtype"), out);
  }
  cuda::check_launch(call.op.name);
}

}  // namespace brrr::kernels
