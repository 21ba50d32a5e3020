// The scales of 8-bit matmuls (fp8_matmul_cuda.cpp): where the library reads them, and applied after a matmul in f32.
#include "brrr/kernels/cuda/device/elements.cuh"
#include "brrr/kernels/cuda/gemm/fp8_cuda.h"

namespace brrr::kernels {
namespace {

// A result in f32, scaled and rounded.
struct ScaledElement {
  const float* product;
  Elements result, a_scale, b_scale, bias;
  bool has_bias;
  int64_t columns, bias_stride;

  __device__ void operator()(int64_t i) const {
    float value = product[i] * (a_scale.load<float>(0) * b_scale.load<float>(0));
    if (has_bias) value += bias.load<float>(i % columns * bias_stride);
    result.store(i, value);
  }
};

__global__ void place_scales_kernel(const float* a, const float* b, float* placed) {
  placed[0] = *a;
  placed[kScaleSpan] = *b;
}

}  // namespace

void place_scales_cuda(const CudaCall& call, const float* a, const float* b, float* placed) {
  place_scales_kernel<<<1, 1, 0, call.stream>>>(a, b, placed);
  cuda::check_launch(call.op.name);
}

void scale_product_cuda(const CudaCall& call, const float* product) {
  const Operand& output = call.output(0);
  const bool has_bias = call.inputs.size() == 5;
  const Operand& bias = call.input(has_bias ? 4 : 2);
  launch_for_each(call, output.count(),
                  ScaledElement{.product = product,
                                .result = Elements(output),
                                .a_scale = Elements(call.input(2)),
                                .b_scale = Elements(call.input(3)),
                                .bias = Elements(bias),
                                .has_bias = has_bias,
                                .columns = output.shape().back(),
                                .bias_stride = bias.layout->rank() == 1 ? bias.layout->strides[0]
                                                                        : int64_t{0}});
}

}  // namespace brrr::kernels
