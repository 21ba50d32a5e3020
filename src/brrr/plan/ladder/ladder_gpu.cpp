#include "brrr/plan/ladder/ladder_gpu.h"

#include <algorithm>
#include <cmath>

#include "brrr/base/error.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/device/gpu_info.h"
#include "brrr/hardware/measure.h"
#include "brrr/hardware/measure_cuda.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/random/random.h"

#if BRRR_HAS_CUDA
#include "brrr/plan/ladder/ladder_kernels_cuda.h"
#endif

namespace brrr::plan {
namespace {

constexpr int kDevice = 0;

// In the order of the ladder; `threads` of a GPU are not counted.
std::vector<Rung> empty_rungs() {
  std::vector<Rung> rungs = {
      {"GPU naive", "a thread a result", "f32", 0, Cause::device},
      {"GPU shared memory", "tiles of 32 x 32", "f32", 0, Cause::cache},
      {"GPU registers", "8 x 8 a thread, tiles of 128", "f32", 0, Cause::registers},
      {"GPU tensor cores", "wmma, 32 x 32 a warp", "bf16", 0, Cause::matrix_units},
      {"GPU staged", "wmma, next tiles fetched ahead", "bf16", 0, Cause::cache},
      {"cuBLASLt", "the vendor's library", "bf16", 0, Cause::library},
      {"brrr on the GPU", "matmul of this library", "bf16", 0, Cause::library}};
  for (Rung& rung : rungs) rung.is_aside = rung.name == "cuBLASLt";
  return rungs;
}

GpuClimb missing_climb(std::string_view why) {
  GpuClimb climb{.name = {}, .peak_flops_per_second = 0, .rungs = empty_rungs()};
  for (Rung& rung : climb.rungs) rung.missing = why;
  return climb;
}

#if BRRR_HAS_CUDA
// The quickest of several large products of the library. No single size is a roof: the larger ones run long enough to
// reach the power limit and lower the clock, the smaller ones pay for their launch.
double measured_peak() {
  double best = 0;
  for (const int64_t n : {4096, 6144, 8192, 12288}) {
    const hardware::ProductSize size{n, n, n};
    if (const auto seconds = hardware::time_product(kDevice, hardware::ProductKind::bf16, size))
      best = std::max(best, size.flops().value() / seconds->value());
  }
  return best;
}

GpuClimb measured_climb(int64_t n) {
  const Device gpu = Device::cuda(kDevice);
  const cuda::Stream stream = cuda::stream(kDevice);
  const auto factor = [&](uint32_t draw) {
    const RandomKey key{.seed = 1, .stream = 0, .draw = draw};
    return uniform({n, n}, key, {-1, 1}, {.dtype = DType::f32, .device = gpu});
  };
  const Tensor a = factor(1), b = factor(2), c = zeros({n, n}, {.device = gpu});
  const Tensor low_a = cast(a, DType::bf16), low_b = cast(b, DType::bf16);
  const auto wide_at = [](const Tensor& x) { return reinterpret_cast<float*>(x.storage().data()); };
  const auto low_at = [](const Tensor& x) { return reinterpret_cast<bf16*>(x.storage().data()); };
  const ladder::GpuMatrices<float> wide{wide_at(a), wide_at(b), wide_at(c), n};
  const ladder::GpuMatrices<bf16> low{low_at(low_a), low_at(low_b), wide_at(c), n};
  const auto seconds_of = [&](const std::function<void()>& enqueue) {
    const auto waited = [&] { enqueue(), cuda::wait(stream); };
    waited();
    return hardware::time_median(waited, 5).value();
  };
  const auto library = hardware::time_product(kDevice, hardware::ProductKind::bf16, {n, n, n});
  const double seconds[] = {seconds_of([&] { ladder::gpu_naive(wide, stream); }),
                            seconds_of([&] { ladder::gpu_shared(wide, stream); }),
                            seconds_of([&] { ladder::gpu_registers(wide, stream); }),
                            seconds_of([&] { ladder::gpu_tensor_cores(low, stream); }),
                            seconds_of([&] { ladder::gpu_staged(low, stream); }),
                            library ? library->value() : 0,
                            seconds_of([&] { matmul(low_a, low_b); })};
  const double flops = 2 * std::pow(static_cast<double>(n), 3);
  GpuClimb climb{.name = list_gpus().gpus.at(kDevice).name,
                 .peak_flops_per_second = measured_peak(),
                 .rungs = empty_rungs()};
  for (size_t i = 0; i < climb.rungs.size(); ++i) {
    if (seconds[i] > 0)
      climb.rungs[i].flops_per_second = flops / seconds[i];
    else
      climb.rungs[i].missing = "the library has no such product here";
  }
  return climb;
}
#endif

}  // namespace

GpuClimb climb_gpu(int64_t n) {
  check(n >= 128 && n % 128 == 0, "ladder: matrices of ", n, " on a GPU must be multiples of 128");
#if BRRR_HAS_CUDA
  if (cuda::gpu_count() > 0) return measured_climb(n);
  return missing_climb("no GPU is here");
#else
  return missing_climb("this build has no CUDA");
#endif
}

}  // namespace brrr::plan
