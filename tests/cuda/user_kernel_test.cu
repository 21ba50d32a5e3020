// Ops of a user with CUDA code of their own, in one source: a kernel, and an expression for generated kernels.
// Compiled in builds with CUDA; it runs where there is a GPU.
#include <gtest/gtest.h>

#include "brrr/brrr.h"
#include "brrr/kernels/cpu/elementwise/functor_tiles.h"
#include "brrr/kernels/cuda/elementwise/elementwise_cuda.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/samples.h"
#include "brrr/sweep/cuda.h"
#include "cuda/gpu.h"

namespace brrr {
namespace {

// ---- an op with a kernel: y[i] = x[i] where i is even, -x[i] where it is odd ---------------------------
__global__ void alternate(const float* x, float* y, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) y[i] = i % 2 == 0 ? x[i] : -x[i];
}

void alternate_cuda(const CudaCall& call) {
  const int64_t count = call.output(0).count();
  if (count == 0) return;
  constexpr int kThreads = 256;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  alternate<<<blocks, kThreads, 0, call.stream>>>(call.input(0).data<float>(),
                                                  call.output(0).data<float>(), count);
}

TensorTypes infer_alternate(const InferCall& call) {
  check(call.shape(0).size() == 1, "test_alternate: x must be a vector; flatten it");
  return infer_same(call);
}

Tensors alternate_compose(const ComposeCall& call) {
  const Tensor& x = call.input(0);
  const Tensor i = to(arange(x.numel()), x.device());
  return {where(equal(remainder(i, 2), 0), x, -x)};
}

std::vector<Sample> alternate_samples() {
  return {{{sample_values({7}, 1)}, {}},
          {{sample_values({1}, 2)}, {}},
          {{sample_values({600}, 3)}, {}}};
}

const OpDef alternate_op{.name = "test_alternate",
                         .formula = "x, with the sign of odd elements changed",
                         .dtypes = dtype_set(DType::f32),
                         .infer = infer_alternate,
                         .compose = alternate_compose,
                         .samples = alternate_samples};
const bool is_registered = [] {
  register_cuda_kernel(alternate_op, {.run = alternate_cuda});
  return true;
}();

// ---- an elementwise op by its expression ----------------------------------------------------------------
struct Cube {
  template <typename T>
  static T of(T x) {
    return x * x * x;
  }
};

const OpDef cube_op{
    .name = "test_cuda_cube",
    .formula = "x^3",
    .kind = OpKind::elementwise,
    .infer = infer_same,
    .scalar = [](const double* x, const Attrs&) { return x[0] * x[0] * x[0]; },
    .tiles = kernels::tiles_of<Cube>,
    .cpu = kernels::run_elementwise,
    .expression = [](const Attrs&, ComputeType) -> std::string { return "x0 * x0 * x0"; },
    .samples = samples_any};

TEST(UserKernel, RunsOnTheGpu) {
  BRRR_NEEDS_GPU();
  const Tensor y = call_one(alternate_op, {to(tensor({1, 2, 3}), Device::cuda(0))});
  EXPECT_EQ(to(y, Device::cpu()).to_vector<float>(), (std::vector<float>{1, -2, 3}));
}

// Few elements: no built-in kernel knows the op, so one is generated whatever the size.
TEST(UserKernel, AnExpressionRunsOnTheGpu) {
  BRRR_NEEDS_GPU();
  const Tensor y = call_one(cube_op, {to(tensor({-2, 0, 3}), Device::cuda(0))});
  EXPECT_EQ(to(y, Device::cpu()).to_vector<float>(), (std::vector<float>{-8, 0, 27}));
}

TEST(UserKernel, PassesTheSweepOnTheGpu) {
  BRRR_NEEDS_GPU();
  for (const sweep::Check& check : sweep::cuda_checks()) {
    EXPECT_NO_THROW(check.run(alternate_op)) << check.name;
    EXPECT_NO_THROW(check.run(cube_op)) << check.name;
  }
}

}  // namespace
}  // namespace brrr
