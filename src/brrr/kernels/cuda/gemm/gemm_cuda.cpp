#include "brrr/kernels/cuda/gemm/gemm_cuda.h"

#if BRRR_HAS_CUDA

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "brrr/base/error.h"
#include "brrr/device/gpu_info.h"
#include "brrr/kernels/cuda/gemm/gemm_description.h"

namespace brrr::kernels {
namespace {

bool adds_in_place(const Gemm& gemm) {
  return gemm.accumulate || (gemm.addend && gemm.addend == gemm.c.data);
}

// ---- Choices.

// Everything that an algorithm may depend on.
std::string key_of(const Gemm& gemm) {
  const auto alignment = [](const void* address) {
    const auto bits = reinterpret_cast<uintptr_t>(address);
    return bits % 16 == 0 ? 16 : bits % 8 == 0 ? 8 : bits % 4 == 0 ? 4 : 2;
  };
  const auto matrix = [&](const GemmMatrix& x) {
    return join_text(to_text(x.dtype), is_row_major(x) ? "r" : "c", leading(x), "+", x.batch_stride,
                     "@", alignment(x.data));
  };
  return join_text("m", gemm.m, " n", gemm.n, " k", gemm.k, " batch", gemm.batch,
                   " a:", matrix(gemm.a), " b:", matrix(gemm.b), " c:", matrix(gemm.c),
                   gemm.tf32 ? " tf32" : "", adds(gemm) ? " accumulate" : "",
                   gemm.a_scale ? " scaled" : "", " epilogue", static_cast<int>(gemm.epilogue));
}

GemmAlgorithm opaque(const cublasLtMatmulAlgo_t& algorithm) {
  GemmAlgorithm result;
  static_assert(sizeof(algorithm.data) == sizeof(result.data));
  std::memcpy(result.data.data(), algorithm.data, sizeof(algorithm.data));
  return result;
}
cublasLtMatmulAlgo_t for_library(const GemmAlgorithm& algorithm) {
  cublasLtMatmulAlgo_t result{};
  std::memcpy(result.data, algorithm.data.data(), sizeof(result.data));
  return result;
}

constexpr int kCandidates = 8;
// Products of a step that is bound by the GPU's power. A quarter of a second, in which the limit of power shows fully, chose
// no better than this and made a calibration take minutes.
constexpr double kWorthHeating = 5e10, kHeatSeconds = 0.03;

// The median of three rounds; a round is long enough for the clock of events.
double seconds_of(const GemmDescription& description, const Gemm& gemm,
                  const cublasLtMatmulAlgo_t& algorithm, cuda::Stream stream,
                  std::span<std::byte> workspace) {
  const int runs = gemm.flops() > kWorthHeating ? 2 : 8;
  std::array<double, 3> seconds{};
  cuda::Event begin, end;
  for (double& round : seconds) {
    begin.record(stream);
    for (int i = 0; i < runs; ++i) {
      if (description.run(gemm, algorithm, stream, workspace) != CUBLAS_STATUS_SUCCESS) return 1e9;
    }
    end.record(stream);
    end.wait();
    round = cuda::seconds_between(begin, end);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[1];
}

// Timing runs a product several times: one that adds to its own result writes elsewhere meanwhile.
class ScratchResult {
 public:
  ScratchResult(Gemm& gemm, cuda::Stream stream)
      : device_(cuda::current_device()), stream_(stream) {
    if (!adds_in_place(gemm)) return;
    const int64_t matrices = gemm.batch - 1, rows = gemm.m - 1;
    const auto bytes = static_cast<size_t>(storage_bytes(
        gemm.c.dtype, matrices * gemm.c.batch_stride + rows * leading(gemm.c) + gemm.n));
    constexpr int64_t kReserve = int64_t{1} << 30;  // for those that come after
    if (cuda::memory_state(device_).free < static_cast<int64_t>(bytes) + kReserve) return;
    memory_ = cuda::allocate_bytes(device_, bytes);
    if (!gemm.addend) gemm.addend = gemm.c.data;
    gemm.accumulate = false;
    gemm.c.data = memory_;
  }
  ~ScratchResult() {
    if (!memory_) return;
    cuda::wait(stream_);
    cuda::release_bytes(device_, memory_);
    cuda::return_kept_blocks(device_);  // nobody planned with it
  }
  ScratchResult(const ScratchResult&) = delete;
  ScratchResult& operator=(const ScratchResult&) = delete;

 private:
  int device_;
  cuda::Stream stream_;
  void* memory_ = nullptr;
};

cublasLtMatmulAlgo_t choose(const GemmDescription& description, const Gemm& gemm,
                            cuda::Stream stream, std::span<std::byte> workspace) {
  const std::string key = key_of(gemm);
  if (const auto known = gemm_choices().find(key)) return for_library(*known);
  const auto found = description.candidates(kCandidates, workspace.size());
  check(!found.empty(), "cuda: cuBLASLt has no algorithm for ", key);
  if (cuda::is_capturing(stream)) return found.front().algo;  // nothing can be timed now; later
  std::vector<GemmAlgorithm> candidates;
  for (const cublasLtMatmulHeuristicResult_t& each : found) candidates.push_back(opaque(each.algo));
  if (gemm.flops() < kFlopsWorthTiming)
    return for_library(choose_gemm_algorithm(gemm_choices(), key, candidates, {}));
  Gemm timed = gemm;
  const ScratchResult scratch(timed, stream);
  GemmClock clock;
  if (!adds_in_place(timed))
    clock = [&](const GemmAlgorithm& algorithm) {
      return seconds_of(description, timed, for_library(algorithm), stream, workspace);
    };
  return for_library(choose_gemm_algorithm(gemm_choices(), key, candidates, clock,
                                           gemm.flops() > kWorthHeating ? kHeatSeconds : 0));
}

}  // namespace

bool has_gemm_algorithm(const Gemm& gemm) {
  if (!is_gemm_supported(gemm)) return false;
  // Layers are alike, and a budget of memory plans a program many times.
  static std::mutex mutex;
  static std::map<std::string, bool> known;
  const std::lock_guard lock(mutex);
  const auto [answer, is_new] =
      known.emplace(join_text(cuda::current_device(), " ", key_of(gemm)), false);
  if (is_new) {
    const auto workspace = static_cast<size_t>(gemm_workspace_bytes(gemm));
    answer->second = !GemmDescription(gemm).candidates(1, workspace).empty();
  }
  return answer->second;
}

void run_gemm_cuda(const Gemm& gemm, cuda::Stream stream, std::span<std::byte> workspace) {
  const GemmDescription description(gemm);
  const cublasLtMatmulAlgo_t algorithm = choose(description, gemm, stream, workspace);
  require_cublas(description.run(gemm, algorithm, stream, workspace),
                 join_text("cublasLtMatmul of ", key_of(gemm)));
}

std::string gemm_library_text(int device) {
  const GpuList gpus = list_gpus();
  check(device >= 0 && static_cast<size_t>(device) < gpus.gpus.size(), "cuda:", device,
        " is not there");
  return join_text(gpus.gpus[static_cast<size_t>(device)].name, " driver ",
                   cuda::device_facts(device).driver_version, " cublasLt ",
                   cuda::cublaslt() ? std::to_string(cuda::cublaslt()->version()) : "none");
}

}  // namespace brrr::kernels

#else

#include "brrr/base/error.h"

namespace brrr::kernels {

bool has_gemm_algorithm(const Gemm&) { return false; }
void run_gemm_cuda(const Gemm&, cuda::Stream, std::span<std::byte>) {
  fail("this build has no CUDA; configure with -DBRRR_CUDA=ON, or use the cpu");
}
std::string gemm_library_text(int) { return "no CUDA"; }

}  // namespace brrr::kernels

#endif

namespace brrr::kernels {

GemmChoices& gemm_choices() {
  static GemmChoices all;
  return all;
}

AlgorithmChoices algorithms_of_run(Device device) {
  if (!device.is_accelerator()) return {};
  return {.library = gemm_library_text(device.index), .lines = gemm_choices().used_text()};
}

}  // namespace brrr::kernels
