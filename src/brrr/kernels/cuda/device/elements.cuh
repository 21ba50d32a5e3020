// What CUDA kernels share: elements of any dtype, positions in strided operands, and launches over a count
// of elements. Only .cu files include it.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "brrr/device/cuda/fault.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/graph/cuda_call.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"
#include "brrr/kernels/scalar/wrap.h"
#include "brrr/tensor/element.h"

namespace brrr::kernels {

// convert_element by the instructions that a GPU has for it. The same values; a NaN may lose its payload.
template <typename To, typename From>
__device__ To convert_fast(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, bf16>) {
    return convert_fast<To>(__uint_as_float(static_cast<uint32_t>(value.bits) << 16));
  } else if constexpr (std::is_same_v<From, f16>) {
    return convert_fast<To>(__half2float(__ushort_as_half(value.bits)));
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bf16>) {
    return bf16::from_bits(__bfloat16_as_ushort(__float2bfloat16_rn(value)));
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, f16>) {
    return f16::from_bits(__half_as_ushort(__float2half_rn(value)));
  } else {
    return convert_element<To>(value);
  }
}

// ---- Elements. The dtype is the same for all threads of a launch, so the switch costs a few cycles and no
// divergence; kernels where that matters are instantiated for the dtype.

template <typename C>
__device__ C load_element(const void* base, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::f64: return convert_fast<C>(static_cast<const double*>(base)[i]);
    case DType::f32: return convert_fast<C>(static_cast<const float*>(base)[i]);
    case DType::f16: return convert_fast<C>(static_cast<const f16*>(base)[i]);
    case DType::bf16: return convert_fast<C>(static_cast<const bf16*>(base)[i]);
    case DType::f8e4m3: return convert_fast<C>(static_cast<const f8e4m3*>(base)[i]);
    case DType::f8e5m2: return convert_fast<C>(static_cast<const f8e5m2*>(base)[i]);
    case DType::i64: return convert_fast<C>(static_cast<const int64_t*>(base)[i]);
    case DType::i32: return convert_fast<C>(static_cast<const int32_t*>(base)[i]);
    case DType::i16: return convert_fast<C>(static_cast<const int16_t*>(base)[i]);
    case DType::i8: return convert_fast<C>(static_cast<const int8_t*>(base)[i]);
    case DType::u64: return convert_fast<C>(static_cast<const uint64_t*>(base)[i]);
    case DType::u32: return convert_fast<C>(static_cast<const uint32_t*>(base)[i]);
    case DType::u16: return convert_fast<C>(static_cast<const uint16_t*>(base)[i]);
    case DType::u8: return convert_fast<C>(static_cast<const uint8_t*>(base)[i]);
    case DType::boolean: return convert_fast<C>(static_cast<const bool*>(base)[i]);
    case DType::i4:
    case DType::u4: break;
  }
  // Two a byte, the even one in the low half.
  const int byte = static_cast<const uint8_t*>(base)[i >> 1];
  const int nibble = (byte >> ((i & 1) * 4)) & 15;
  return static_cast<C>(dtype == DType::i4 && nibble >= 8 ? nibble - 16 : nibble);
}

// Packed dtypes are not stored here: neighbours share a byte (kernels/cuda/elementwise/copy_cuda.cu).
template <typename C>
__device__ void store_element(void* base, DType dtype, int64_t i, C value) {
  switch (dtype) {
    case DType::f64: static_cast<double*>(base)[i] = convert_fast<double>(value); return;
    case DType::f32: static_cast<float*>(base)[i] = convert_fast<float>(value); return;
    case DType::f16: static_cast<f16*>(base)[i] = convert_fast<f16>(value); return;
    case DType::bf16: static_cast<bf16*>(base)[i] = convert_fast<bf16>(value); return;
    case DType::f8e4m3: static_cast<f8e4m3*>(base)[i] = convert_fast<f8e4m3>(value); return;
    case DType::f8e5m2: static_cast<f8e5m2*>(base)[i] = convert_fast<f8e5m2>(value); return;
    case DType::i64: static_cast<int64_t*>(base)[i] = convert_fast<int64_t>(value); return;
    case DType::i32: static_cast<int32_t*>(base)[i] = convert_fast<int32_t>(value); return;
    case DType::i16: static_cast<int16_t*>(base)[i] = convert_fast<int16_t>(value); return;
    case DType::i8: static_cast<int8_t*>(base)[i] = convert_fast<int8_t>(value); return;
    case DType::u64: static_cast<uint64_t*>(base)[i] = convert_fast<uint64_t>(value); return;
    case DType::u32: static_cast<uint32_t*>(base)[i] = convert_fast<uint32_t>(value); return;
    case DType::u16: static_cast<uint16_t*>(base)[i] = convert_fast<uint16_t>(value); return;
    case DType::u8: static_cast<uint8_t*>(base)[i] = convert_fast<uint8_t>(value); return;
    case DType::boolean: static_cast<bool*>(base)[i] = convert_fast<bool>(value); return;
    case DType::i4:
    case DType::u4: return;
  }
}

// An operand's first element: base of the storage and offset of the layout in one address. A packed operand
// keeps the odd element of its first byte.
struct Elements {
  std::byte* base;
  int64_t offset;
  DType dtype;

  explicit Elements(const Operand& operand)
      : base(operand.base), offset(operand.layout->offset), dtype(operand.dtype) {
    if (is_packed(dtype)) return;
    base += storage_bytes(dtype, offset);
    offset = 0;
  }
  template <typename C>
  __device__ C load(int64_t i) const {
    return load_element<C>(base, dtype, offset + i);
  }
  template <typename C>
  __device__ void store(int64_t i, C value) const {
    store_element<C>(base, dtype, offset + i, value);
  }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(base);
  }
};

// ---- Positions.

// The axes that one operand is walked by, as a flat index counts them.
struct Walk {
  int rank;
  bool narrow;  // fewer than 2^31 elements: 32-bit divisions, several times cheaper
  int64_t sizes[kMaxRank], strides[kMaxRank];

  __device__ int64_t position(int64_t flat) const {
    if (rank == 1) return flat * strides[0];
    int64_t position = 0;
    if (narrow) {
      auto rest = static_cast<uint32_t>(flat);
      for (int axis = rank - 1; axis > 0; --axis) {
        const auto size = static_cast<uint32_t>(sizes[axis]);
        const uint32_t quotient = rest / size;
        position += static_cast<int64_t>(rest - quotient * size) * strides[axis];
        rest = quotient;
      }
      return rank == 0 ? 0 : position + static_cast<int64_t>(rest) * strides[0];
    }
    int64_t rest = flat;
    for (int axis = rank - 1; axis > 0; --axis) {
      const int64_t quotient = rest / sizes[axis];
      position += (rest - quotient * sizes[axis]) * strides[axis];
      rest = quotient;
    }
    return rank == 0 ? 0 : position + rest * strides[0];
  }
};

inline Walk walk_of(const LoopNest& nest, int operand) {
  Walk walk{.rank = nest.rank, .narrow = true, .sizes = {}, .strides = {}};
  int64_t count = 1;
  for (int axis = 0; axis < nest.rank; ++axis) {
    const auto a = static_cast<size_t>(axis);
    walk.sizes[axis] = nest.sizes[a];
    walk.strides[axis] = nest.strides[static_cast<size_t>(operand)][a];
    count *= std::max<int64_t>(1, nest.sizes[a]);
  }
  walk.narrow = count < INT32_MAX;
  return walk;
}

// One operand alone.
inline Walk walk_of(const Layout& layout) {
  const Layout* operand = &layout;
  return walk_of(make_nest(layout.shape, {&operand, 1}), 0);
}

// ---- Whole chunks. Where operands run in order along their last axis, elements can be moved several at a time.

// The most bytes (16, 8, 4 or those of an element) by which all layouts, at their addresses, can be walked.
struct ChunkOperand {
  const std::byte* base;
  Layout* layout;  // offset 0: base is the first element
};
inline int64_t chunk_bytes_of(std::span<const ChunkOperand> operands, int64_t element_bytes) {
  for (int64_t bytes = 16; bytes > element_bytes; bytes /= 2) {
    bool whole = true;
    for (const ChunkOperand& x : operands) {
      const Layout& layout = *x.layout;
      if (layout.rank() == 0 || layout.strides.back() != 1) return element_bytes;
      whole = whole && reinterpret_cast<uintptr_t>(x.base) % static_cast<uintptr_t>(bytes) == 0 &&
              layout.shape.back() * element_bytes % bytes == 0;
      for (int axis = 0; axis + 1 < layout.rank(); ++axis)
        whole = whole && layout.strides[axis] * element_bytes % bytes == 0;
    }
    if (whole) return bytes;
  }
  return element_bytes;
}
// The same layout, counted in chunks of `factor` elements.
inline Layout in_chunks(Layout layout, int64_t factor) {
  layout.shape.back() /= factor;
  for (int axis = 0; axis + 1 < layout.rank(); ++axis) layout.strides[axis] /= factor;
  return layout;
}

// Calls body.template operator()<Bits>() with a type of that many bytes.
template <typename Body>
void visit_chunk(int64_t bytes, const Body& body) {
  switch (bytes) {
    case 1: return body.template operator()<uint8_t>();
    case 2: return body.template operator()<uint16_t>();
    case 4: return body.template operator()<uint32_t>();
    case 8: return body.template operator()<uint64_t>();
    default: return body.template operator()<uint4>();
  }
}

// ---- Launches.

inline constexpr int kBlockThreads = 256;
inline constexpr int64_t kMaxBlocks = 1 << 16;

inline unsigned blocks_for(int64_t count, int64_t per_block = kBlockThreads) {
  return static_cast<unsigned>(
      std::min(kMaxBlocks, std::max<int64_t>(1, (count + per_block - 1) / per_block)));
}

template <typename Body>
__global__ void __launch_bounds__(kBlockThreads) for_each_kernel(int64_t count, Body body) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kBlockThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < count;
       i += step)
    body(i);
}

// body(i) for every i in [0, count), in any order.
template <typename Body>
void launch_for_each(const CudaCall& call, int64_t count, const Body& body) {
  if (count == 0) return;
  for_each_kernel<<<blocks_for(count), kBlockThreads, 0, call.stream>>>(count, body);
  cuda::check_launch(call.op.name);
}

inline cuda::FaultNote fault_note(const CudaCall& call) {
  return {cuda::fault_of(cuda::current_device()), reinterpret_cast<uint64_t>(call.op.name.data()),
          static_cast<int64_t>(call.op.name.size())};
}

}  // namespace brrr::kernels
