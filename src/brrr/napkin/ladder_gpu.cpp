#include "brrr/napkin/ladder_gpu.h"

#include <cmath>

#include "brrr/account/measure.h"
#include "brrr/account/measure_cuda.h"
#include "brrr/base/error.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/ops/copy.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/matmul.h"
#include "brrr/ops/random.h"

#if BRRR_HAS_CUDA
#include "brrr/napkin/ladder_kernels_cuda.h"
#endif

namespace brrr {
namespace {

constexpr int kDevice = 0;

// In the order of the ladder; `threads` of a GPU are not counted.
std::vector<Rung> empty_rungs() {
  return {{"GPU naive", "a thread a result", "f32", 0, Cause::device},
          {"GPU shared memory", "tiles of 32 x 32", "f32", 0, Cause::cache},
          {"GPU tensor cores", "wmma, 32 x 32 a warp", "bf16", 0, Cause::device},
          {"cuBLASLt", "the vendor's library", "bf16", 0, Cause::rest},
          {"brrr on the GPU", "matmul of this library", "bf16", 0, Cause::rest}};
}

std::vector<Rung> missing_rungs(std::string_view why) {
  std::vector<Rung> rungs = empty_rungs();
  for (Rung& rung : rungs) rung.missing = why;
  return rungs;
}

#if BRRR_HAS_CUDA
constexpr int64_t kPeakSize = 8192;

// The quickest large product that the library has: what shares are of.
double measured_peak() {
  const ProductSize size{kPeakSize, kPeakSize, kPeakSize};
  const auto seconds = time_product(kDevice, ProductKind::bf16, size);
  return seconds ? size.flops().value() / seconds->value() : 0;
}

std::vector<Rung> measured_rungs(int64_t n) {
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
    return time_median(waited, 5).value();
  };
  const auto library = time_product(kDevice, ProductKind::bf16, {n, n, n});
  const double seconds[] = {seconds_of([&] { ladder::gpu_naive(wide, stream); }),
                            seconds_of([&] { ladder::gpu_shared(wide, stream); }),
                            seconds_of([&] { ladder::gpu_tensor_cores(low, stream); }),
                            library ? library->value() : 0,
                            seconds_of([&] { matmul(low_a, low_b); })};
  const double flops = 2 * std::pow(static_cast<double>(n), 3), peak = measured_peak();
  std::vector<Rung> rungs = empty_rungs();
  for (size_t i = 0; i < rungs.size(); ++i) {
    rungs[i].peak_flops_per_second = peak;
    if (seconds[i] > 0)
      rungs[i].flops_per_second = flops / seconds[i];
    else
      rungs[i].missing = "the library has no such product here";
  }
  return rungs;
}
#endif

}  // namespace

std::vector<Rung> climb_gpu(int64_t n) {
  check(n >= 64 && n % 64 == 0, "ladder: matrices of ", n, " on a GPU must be multiples of 64");
#if BRRR_HAS_CUDA
  if (cuda::gpu_count() > 0) return measured_rungs(n);
  return missing_rungs("no GPU is here");
#else
  return missing_rungs("this build has no CUDA");
#endif
}

}  // namespace brrr
