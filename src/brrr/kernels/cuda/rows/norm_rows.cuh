// What the kernels of norms and of their gradients share.
#pragma once

#include "brrr/kernels/cuda/device/rows.cuh"

namespace brrr::kernels {

// A vector over the columns, of any dtype and stride.
struct NormColumns {
  Elements data;
  int64_t stride;
  bool is_whole;  // in order, at 16 bytes
  explicit NormColumns(const Operand& x)
      : data(x),
        stride(x.layout->strides[0]),
        is_whole(stride == 1 && reinterpret_cast<uintptr_t>(data.base) % 16 == 0) {}

  template <typename C>
  __device__ C at(int64_t col) const {
    return data.load<C>(col * stride);
  }
  // Whether they are elements W that read() may be asked for.
  template <typename W>
  bool has_chunks_of() const {
    return is_whole && data.dtype == dtype_of<W>();
  }
  // The columns of a row's chunk of elements T, mostly from the cache next to the multiprocessor.
  template <typename T, typename W>
  __device__ void read(int chunk, float (&values)[kChunk<T>]) const {
    if constexpr (std::is_same_v<W, T>) {
      unpack_chunk<T>(__ldg(reinterpret_cast<const uint4*>(data.base) + chunk), values);
    } else {
      static_assert(std::is_same_v<W, float>);
      constexpr int kGroups = kChunk<T> / 4;
#pragma unroll
      for (int group = 0; group < kGroups; ++group)
        *reinterpret_cast<float4*>(values + 4 * group) =
            __ldg(reinterpret_cast<const float4*>(data.base) + chunk * kGroups + group);
    }
  }
};

// Such a vector as floats in shared memory, read once a block: registers are for rows under way. Groups of four
// columns lie [group of a chunk][chunk], so that neighbouring lanes read neighbouring 16 bytes.
template <typename T>
struct StagedColumns {
  static constexpr int kGroups = kChunk<T> / 4;
  const float4* groups;
  int chunks;

  __device__ StagedColumns(float4* place, const NormColumns& from, int all_chunks)
      : groups(place), chunks(all_chunks) {
    const int cols = all_chunks * kChunk<T>;
    if (from.is_whole && from.data.dtype == DType::f32) {  // few turns: rows wait for their columns
      const float4* const quads = reinterpret_cast<const float4*>(from.data.base);
      for (int quad = static_cast<int>(threadIdx.x); quad < cols / 4;
           quad += static_cast<int>(blockDim.x))
        place[quad % kGroups * chunks + quad / kGroups] = quads[quad];
      return;
    }
    for (int col = static_cast<int>(threadIdx.x); col < cols; col += static_cast<int>(blockDim.x)) {
      const int chunk = col / kChunk<T>, within = col % kChunk<T>;
      reinterpret_cast<float*>(place + within / 4 * chunks + chunk)[within % 4] =
          from.at<float>(col);
    }
  }
  __device__ void read(int chunk, float (&values)[kChunk<T>]) const {
#pragma unroll
    for (int group = 0; group < kGroups; ++group)
      *reinterpret_cast<float4*>(values + 4 * group) = groups[group * chunks + chunk];
  }
};
// What they may take together: the shared memory that every GPU gives a block.
inline constexpr size_t kStagedBytes = 47 * 1024;

// 1 / sqrt(x): the instruction is wrong by two units in the last place; a step of Newton's leaves one.
__device__ inline float inverse_root(float x) {
  const float guess = rsqrtf(x);
  const float better = fmaf(0.5f * guess, fmaf(-x * guess, guess, 1.0f), guess);
  return x > 0 && x < std::numeric_limits<float>::infinity() ? better : guess;
}

inline int64_t norm_row_count(const Operand& x) {
  return x.shape().back() == 0 ? 0 : x.count() / x.shape().back();
}

}  // namespace brrr::kernels
