#include <cuda_runtime.h>

#include <algorithm>

#include "brrr/device/cuda/runtime.h"
#include "brrr/kernels/cpu/elementwise/activation_tiles.h"
#include "brrr/kernels/cpu/elementwise/binary_tiles.h"
#include "brrr/kernels/cpu/elementwise/unary_tiles.h"
#include "brrr/kernels/cuda/codegen/element_access.h"
#include "brrr/kernels/cuda/elementwise/elementwise_builtin.h"
#include "brrr/kernels/cuda/elementwise/elementwise_cuda.h"
#include "brrr/kernels/scalar/functor_traits.h"

namespace brrr::kernels {
namespace {

using namespace functors;

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 16;

template <typename T>
__device__ T load(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::f64: return device::convert<T>(static_cast<const double*>(data)[i]);
    case DType::f32: return device::convert<T>(static_cast<const float*>(data)[i]);
    case DType::f16: return device::convert<T>(static_cast<const f16*>(data)[i]);
    case DType::bf16: return device::convert<T>(static_cast<const bf16*>(data)[i]);
    case DType::f8e4m3: return device::convert<T>(static_cast<const f8e4m3*>(data)[i]);
    case DType::f8e5m2: return device::convert<T>(static_cast<const f8e5m2*>(data)[i]);
    case DType::i64: return device::convert<T>(static_cast<const int64_t*>(data)[i]);
    case DType::i32: return device::convert<T>(static_cast<const int32_t*>(data)[i]);
    case DType::i16: return device::convert<T>(static_cast<const int16_t*>(data)[i]);
    case DType::i8: return device::convert<T>(static_cast<const int8_t*>(data)[i]);
    case DType::u64: return device::convert<T>(static_cast<const uint64_t*>(data)[i]);
    case DType::u32: return device::convert<T>(static_cast<const uint32_t*>(data)[i]);
    case DType::u16: return device::convert<T>(static_cast<const uint16_t*>(data)[i]);
    case DType::u8: return device::convert<T>(static_cast<const uint8_t*>(data)[i]);
    case DType::boolean: return device::convert<T>(static_cast<const bool*>(data)[i]);
    default: return T(0);  // packed types are refused before
  }
}

template <typename T>
__device__ void store(void* data, DType dtype, int64_t i, T value) {
  switch (dtype) {
    case DType::f64: static_cast<double*>(data)[i] = device::convert<double>(value); break;
    case DType::f32: static_cast<float*>(data)[i] = device::convert<float>(value); break;
    case DType::f16: static_cast<f16*>(data)[i] = device::convert<f16>(value); break;
    case DType::bf16: static_cast<bf16*>(data)[i] = device::convert<bf16>(value); break;
    case DType::f8e4m3: static_cast<f8e4m3*>(data)[i] = device::convert<f8e4m3>(value); break;
    case DType::f8e5m2: static_cast<f8e5m2*>(data)[i] = device::convert<f8e5m2>(value); break;
    case DType::i64: static_cast<int64_t*>(data)[i] = device::convert<int64_t>(value); break;
    case DType::i32: static_cast<int32_t*>(data)[i] = device::convert<int32_t>(value); break;
    case DType::i16: static_cast<int16_t*>(data)[i] = device::convert<int16_t>(value); break;
    case DType::i8: static_cast<int8_t*>(data)[i] = device::convert<int8_t>(value); break;
    case DType::u64: static_cast<uint64_t*>(data)[i] = device::convert<uint64_t>(value); break;
    case DType::u32: static_cast<uint32_t*>(data)[i] = device::convert<uint32_t>(value); break;
    case DType::u16: static_cast<uint16_t*>(data)[i] = device::convert<uint16_t>(value); break;
    case DType::u8: static_cast<uint8_t*>(data)[i] = device::convert<uint8_t>(value); break;
    case DType::boolean: static_cast<bool*>(data)[i] = device::convert<bool>(value); break;
    default: break;
  }
}

// Stops the kernel, and every later call of CUDA reports it: zeros would go unnoticed. Never reached: no op
// has a dtype that its function does not compute in.
template <typename T>
__device__ T refuse() {
  __trap();
  __builtin_unreachable();
}

template <typename F, typename T>
__device__ T apply(const T* x, const double* settings) {
  if constexpr (!ComputesIn<F, T>) {
    return refuse<T>();
  } else if constexpr (kSettings<F> == 1) {
    return F::of(x[0], convert_element<T>(settings[0]));
  } else if constexpr (kSettings<F> == 2) {
    return F::of(x[0], convert_element<T>(settings[0]), convert_element<T>(settings[1]));
  } else if constexpr (kOperands<F, T> == 1) {
    return F::of(x[0]);
  } else if constexpr (kOperands<F, T> == 2) {
    return F::of(x[0], x[1]);
  } else {
    return F::of(x[0], x[1], x[2]);
  }
}

#define BRRR_ROW(name, functor, chain) \
  case Function::name: return apply<functor>(x, settings);

template <typename T>
__device__ T unary(Unary function, const T* x, const double* settings) {
  using Function = Unary;
  switch (function) { BRRR_UNARY_FUNCTIONS(BRRR_ROW) }
  return refuse<T>();
}

template <typename T>
__device__ T binary(Binary function, const T* x, const double* settings) {
  using Function = Binary;
  switch (function) { BRRR_BINARY_FUNCTIONS(BRRR_ROW) }
  return refuse<T>();
}

template <typename T>
__device__ T activation_backward(ActivationGrad function, const T* x, const double* settings) {
  using Function = ActivationGrad;
  switch (function) { BRRR_ACTIVATION_GRADS(BRRR_ROW) }
  return refuse<T>();
}
#undef BRRR_ROW

template <typename T>
__device__ T result(const BuiltinElementwise& call, const T* x) {
  using Family = ScalarFunction::Family;
  switch (static_cast<Family>(call.family)) {
    case Family::unary: return unary(static_cast<Unary>(call.function), x, call.settings);
    case Family::binary: return binary(static_cast<Binary>(call.function), x, call.settings);
    case Family::activation_backward:
      return activation_backward(static_cast<ActivationGrad>(call.function), x, call.settings);
    case Family::none: break;  // such a function is known by its text alone
  }
  return refuse<T>();
}

__device__ int64_t position(const BuiltinElementwise& call, int operand, int64_t i) {
  if (call.flat) return i;
  int64_t at = 0;
  for (int axis = call.rank - 1; axis >= 0; --axis) {
    at += i % call.sizes[axis] * call.strides[operand][axis];
    i /= call.sizes[axis];
  }
  return at;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) elementwise(BuiltinElementwise call) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  const int last = call.operands - 1;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < call.count;
       i += step) {
    T x[3] = {};
    for (int o = 0; o < last && o < 3; ++o)
      x[o] = load<T>(call.data[o], static_cast<DType>(call.dtypes[o]), position(call, o, i));
    store<T>(call.data[last], static_cast<DType>(call.dtypes[last]), position(call, last, i),
             result(call, x));
  }
}

}  // namespace

void run_builtin_elementwise(const BuiltinElementwise& call, CUstream_st* stream) {
  if (call.count == 0) return;
  const auto blocks =
      static_cast<unsigned>(std::min((call.count + kThreads - 1) / kThreads, kMaxBlocks));
  switch (static_cast<ComputeType>(call.compute_type)) {
    case ComputeType::f32: elementwise<float><<<blocks, kThreads, 0, stream>>>(call); break;
    case ComputeType::f64: elementwise<double><<<blocks, kThreads, 0, stream>>>(call); break;
    case ComputeType::i64: elementwise<int64_t><<<blocks, kThreads, 0, stream>>>(call); break;
    case ComputeType::u64: elementwise<uint64_t><<<blocks, kThreads, 0, stream>>>(call); break;
  }
  cuda::check_launch("elementwise");
}

}  // namespace brrr::kernels
