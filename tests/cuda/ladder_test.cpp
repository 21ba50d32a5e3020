// Every rung of the ladder on a GPU computes the product: a fast wrong kernel would be no rung.
#include <cmath>

#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/plan/ladder/ladder_gpu.h"
#include "brrr/plan/ladder/ladder_kernels_cuda.h"
#include "cuda/gpu.h"

namespace brrr {
namespace {

#if BRRR_HAS_CUDA  // kernels that other builds do not have

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};
constexpr int64_t kSize = 384;  // three tiles of 128 along each axis, twelve stages of k

Tensor random(uint32_t draw) {
  return normal({kSize, kSize}, RandomKey{.seed = 5, .stream = 1, .draw = draw});
}

double relative_error(const Tensor& got, const Tensor& expected) {
  const Tensor a = cast(to(got, Device::cpu()), DType::f64), b = cast(expected, DType::f64);
  return std::sqrt(sum(square(a - b)).item<double>() / sum(square(b)).item<double>());
}

template <typename T>
void expect_product(void (*kernel)(const plan::ladder::GpuMatrices<T>&, cuda::Stream), DType dtype,
                    const char* name) {
  const Tensor a = cast(random(1), dtype), b = cast(random(2), dtype);
  const Tensor expected = matmul(cast(a, DType::f64), cast(b, DType::f64));
  const Tensor on_a = to(a, kGpu), on_b = to(b, kGpu),
               c = full({kSize, kSize}, -1.0, {.dtype = DType::f32, .device = kGpu});
  const cuda::Stream stream = cuda::stream(0);
  kernel({reinterpret_cast<const T*>(on_a.storage().data()),
          reinterpret_cast<const T*>(on_b.storage().data()),
          reinterpret_cast<float*>(c.storage().data()), kSize},
         stream);
  cuda::wait(stream);
  EXPECT_LT(relative_error(c, expected), 2e-6) << name << ": factors are exact, sums are f32";
}

TEST(CudaLadder, EveryRungComputesTheProduct) {
  BRRR_NEEDS_GPU();
  expect_product<float>(plan::ladder::gpu_naive, DType::f32, "naive");
  expect_product<float>(plan::ladder::gpu_shared, DType::f32, "shared memory");
  expect_product<float>(plan::ladder::gpu_registers, DType::f32, "registers");
  expect_product<bf16>(plan::ladder::gpu_tensor_cores, DType::bf16, "tensor cores");
  expect_product<bf16>(plan::ladder::gpu_staged, DType::bf16, "staged");
}

#endif

TEST(CudaLadder, ThePeakIsARateOfThisGpu) {
  BRRR_NEEDS_GPU();
  const plan::GpuClimb climb = plan::climb_gpu(1024);
  EXPECT_FALSE(climb.name.empty());
  for (const plan::Rung& rung : climb.rungs)
    EXPECT_TRUE(rung.is_here()) << rung.name << rung.missing;
  EXPECT_GE(climb.peak_flops_per_second, climb.rungs.front().flops_per_second);
}

}  // namespace
}  // namespace brrr
