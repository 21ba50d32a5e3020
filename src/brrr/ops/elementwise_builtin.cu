#include <cuda_runtime.h>

#include <algorithm>

#include "brrr/device/cuda/runtime.h"
#include "brrr/ops/activation_functors.h"
#include "brrr/ops/binary_functors.h"
#include "brrr/ops/device_elements.h"
#include "brrr/ops/elementwise_builtin.h"
#include "brrr/ops/elementwise_cuda.h"
#include "brrr/ops/unary_functors.h"

namespace brrr {
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
    case DType::u32: static_cast<uint32_t*>(data)[i] = device::convert<uint32_t>(value); break;
    case DType::u16: static_cast<uint16_t*>(data)[i] = device::convert<uint16_t>(value); break;
    case DType::u8: static_cast<uint8_t*>(data)[i] = device::convert<uint8_t>(value); break;
    case DType::boolean: static_cast<bool*>(data)[i] = device::convert<bool>(value); break;
    default: break;
  }
}

// Functions of floats; integers never get here.
template <typename T>
__device__ T float_unary(Unary function, T x, const double* settings) {
  switch (function) {
    case Unary::exp: return Exp::of(x);
    case Unary::log: return Log::of(x);
    case Unary::sqrt: return Sqrt::of(x);
    case Unary::rsqrt: return Rsqrt::of(x);
    case Unary::reciprocal: return Reciprocal::of(x);
    case Unary::sin: return Sin::of(x);
    case Unary::cos: return Cos::of(x);
    case Unary::tanh: return Tanh::of(x);
    case Unary::sigmoid: return Sigmoid::of(x);
    case Unary::erf: return Erf::of(x);
    case Unary::gelu: return Gelu::of(x);
    case Unary::silu: return Silu::of(x);
    case Unary::expm1: return Expm1::of(x);
    case Unary::log1p: return Log1p::of(x);
    case Unary::tan: return Tan::of(x);
    case Unary::leaky_relu: return LeakyRelu<T>{static_cast<T>(settings[0])}(x);
    case Unary::softplus: return Softplus::of(x);
    case Unary::gelu_tanh: return GeluTanh::of(x);
    case Unary::to_tf32: return static_cast<T>(ToTf32::of(static_cast<float>(x)));
    default: return T(0);
  }
}

template <typename T>
__device__ T unary(Unary function, T x, const double* settings) {
  switch (function) {
    case Unary::neg: return Neg::of(x);
    case Unary::abs: return Abs::of(x);
    case Unary::sign: return Sign::of(x);
    case Unary::square: return Square::of(x);
    case Unary::relu: return Relu::of(x);
    case Unary::floor: return Floor::of(x);
    case Unary::ceil: return Ceil::of(x);
    case Unary::round: return Round::of(x);
    case Unary::clamp:
      return Clamp<T>{convert_element<T>(settings[0]), convert_element<T>(settings[1])}(x);
    case Unary::isnan: return IsNan::of(x);
    case Unary::isinf: return IsInf::of(x);
    case Unary::isfinite: return IsFinite::of(x);
    case Unary::logical_not: return LogicalNot::of(x);
    default: break;
  }
  if constexpr (std::floating_point<T>) return float_unary(function, x, settings);
  return T(0);
}

template <typename T>
__device__ T binary(Binary function, T a, T b, T c) {
  switch (function) {
    case Binary::add: return Add::of(a, b);
    case Binary::sub: return Sub::of(a, b);
    case Binary::mul: return Mul::of(a, b);
    case Binary::div:
      if constexpr (std::floating_point<T>) return Div::of(a, b);
      return T(0);
    case Binary::pow: return Pow::of(a, b);
    case Binary::maximum: return Maximum::of(a, b);
    case Binary::minimum: return Minimum::of(a, b);
    case Binary::equal: return Equal::of(a, b);
    case Binary::not_equal: return NotEqual::of(a, b);
    case Binary::less: return Less::of(a, b);
    case Binary::less_equal: return LessEqual::of(a, b);
    case Binary::greater: return Greater::of(a, b);
    case Binary::greater_equal: return GreaterEqual::of(a, b);
    case Binary::where: return Where::of(a, b, c);
    case Binary::fmod: return Fmod::of(a, b);
    case Binary::remainder: return Remainder::of(a, b);
    case Binary::logical_and: return LogicalAnd::of(a, b);
    case Binary::logical_or: return LogicalOr::of(a, b);
    case Binary::logical_xor: return LogicalXor::of(a, b);
  }
  return T(0);
}

template <typename T>
__device__ T activation_backward(ActivationGrad function, T x, T dy) {
  if constexpr (std::floating_point<T>) {
    switch (function) {
      case ActivationGrad::gelu: return GeluBackward::of(x, dy);
      case ActivationGrad::gelu_tanh: return GeluTanhBackward::of(x, dy);
      case ActivationGrad::silu: return SiluBackward::of(x, dy);
    }
  }
  return T(0);
}

template <typename T>
__device__ T result(const BuiltinElementwise& call, const T* x) {
  using Family = BuiltinFunction::Family;
  switch (static_cast<Family>(call.family)) {
    case Family::unary: return unary(static_cast<Unary>(call.function), x[0], call.settings);
    case Family::binary: return binary(static_cast<Binary>(call.function), x[0], x[1], x[2]);
    case Family::activation_backward:
      return activation_backward(static_cast<ActivationGrad>(call.function), x[0], x[1]);
    default: return x[0];
  }
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
  }
  cuda::check_launch("elementwise");
}

}  // namespace brrr
