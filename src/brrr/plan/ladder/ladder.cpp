#include "brrr/plan/ladder/ladder.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>

#include "brrr/base/error.h"
#include "brrr/base/thread_pool.h"
#include "brrr/hardware/measure.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/random/random.h"
#include "brrr/plan/ladder/ladder_gpu.h"
#include "brrr/plan/ladder/ladder_kernels.h"

namespace brrr::plan {
namespace {

// Seconds of one a * b in a loop of the interpreter; 0 where there is none.
double python_seconds(const std::string& python) {
  const std::string command =
      join_text(python,
                " -c \"import timeit; n=3000000; "
                "print(min(timeit.repeat('a*b','a=1.1;b=1.3',number=n,repeat=3))/n)\""
                " 2>/dev/null");
  FILE* pipe = popen(command.c_str(), "r");  // NOLINT(cert-env33-c): the name is the user's own
  if (!pipe) return 0;
  double seconds = 0;
  const int found = std::fscanf(pipe, "%lf", &seconds);
  const int status = pclose(pipe);
  return found == 1 && status == 0 ? seconds : 0;
}

using CblasSgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*,
                            int, float, float*, int);
// A BLAS of the system, where one is installed; brrr itself needs none.
CblasSgemm find_blas() {
  for (const char* name :
       {"libopenblas.so.0", "libopenblas.so", "libblis.so.4", "libmkl_rt.so", "libcblas.so.3"}) {
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {
      if (void* function = dlsym(library, "cblas_sgemm"))
        return reinterpret_cast<CblasSgemm>(function);
    }
  }
  return nullptr;
}

class Climber {
 public:
  explicit Climber(const LadderOptions& options) : options_(options) {
    check(options.size % 48 == 0 && options.slow_size % 48 == 0 && options.slow_size >= 48 &&
              options.size >= 48,
          "ladder: sizes of ", options.size, " and ", options.slow_size,
          " must be multiples of 48");
    const int64_t n = options.size;
    a_ = uniform({n, n}, RandomKey{.seed = 1}), b_ = uniform({n, n}, RandomKey{.seed = 2});
    c_ = zeros({n, n});
  }

  // The best of many calls, as for the peak: other programs only ever make them slower.
  void add(Rung rung, double flops, const std::function<void()>& work) {
    double seconds = hardware::time_median(work, 1).value(), spent = seconds;
    for (int trial = 1; trial < kFewestTrials || spent < kTrialSeconds; ++trial) {
      const double taken = hardware::time_median(work, 1).value();
      seconds = std::min(seconds, taken);
      spent += taken;
    }
    rung.flops_per_second = flops / seconds;
    rungs_.push_back(std::move(rung));
  }
  void add_missing(Rung rung, std::string why) {
    rung.missing = std::move(why);
    rungs_.push_back(std::move(rung));
  }
  void add_product(Rung rung, int64_t n, void (*kernel)(const ladder::Matrices&)) {
    const ladder::Matrices m{a_.data<float>(), b_.data<float>(), c_.data<float>(), n};
    add(std::move(rung), 2.0 * std::pow(static_cast<double>(n), 3), [&] { kernel(m); });
  }

  void climb_interpreters() {
    Rung python{.name = "Python", .what = "a * b in a loop", .dtype = "f64"};
    const double seconds = python_seconds(options_.python);
    if (seconds > 0) {
      python.flops_per_second = 1 / seconds;
      rungs_.push_back(python);
    } else {
      add_missing(python, join_text(options_.python, " is not here"));
    }
    constexpr int64_t kProducts = 2'000'000;
    add({.name = "boxed",
         .what = "virtual call, number on the heap",
         .dtype = "f64",
         .cause = Cause::interpreter},
        kProducts, [] { sink = ladder::boxed_products(kProducts); });
  }

  void climb_loops() {
    const int64_t slow = options_.slow_size, n = options_.size;
    add_product({"naive C", "three loops, i j k", "f32", 1, Cause::boxing}, slow, ladder::naive);
    add_product({"loop order", "i k j: along rows", "f32", 1, Cause::cache}, slow,
                ladder::loop_order);
    add_product({"4 x 4 registers", "16 sums at a time", "f32", 1, Cause::registers}, slow,
                ladder::register_block);
    Rung more{"6 x 8 registers", "48 sums: more than registers hold", "f32", 1, Cause::registers};
    more.is_aside = true;
    add_product(more, slow, ladder::wide_block);
    add_product({"packing", "4 x 4 again, B in panels", "f32", 1, Cause::cache}, n, ladder::packed);
    add_product({"tiling", "k in pieces of 192", "f32", 1, Cause::cache}, n, ladder::tiled);
    const Rung vectors{"SIMD", "AVX2 and FMA, 6 x 16", "f32", 1, Cause::simd},
        wide{"wide SIMD", "AVX-512, 8 x 48", "f32", 1, Cause::simd},
        threads{"threads", "rows dealt out", "f32", thread_pool().threads(), Cause::cores};
    const auto add_if = [&](bool can, const Rung& rung, void (*kernel)(const ladder::Matrices&),
                            const char* why) {
      can ? add_product(rung, n, kernel) : add_missing(rung, why);
    };
    add_if(ladder::has_simd(), vectors, ladder::simd, "this processor has no AVX2");
    add_if(ladder::has_wide_simd(), wide, ladder::wide_simd, "this processor has no AVX-512");
    add_if(ladder::has_simd(), threads, ladder::threaded, "this processor has no AVX2");
  }

  void climb_libraries() {
    const auto n = static_cast<int>(options_.size);
    const double flops = 2.0 * std::pow(static_cast<double>(n), 3);
    Rung library{"library", "cblas_sgemm", "f32", thread_pool().threads(), Cause::library};
    library.is_aside = true;
    if (const CblasSgemm sgemm = find_blas()) {
      add(library, flops, [&] {
        sgemm(101, 111, 111, n, n, n, 1.0F, a_.data<float>(), n, b_.data<float>(), n, 0.0F,
              c_.data<float>(), n);
      });
    } else {
      add_missing(library, "no BLAS is here (apt: libopenblas0)");
    }
    add({"brrr", "matmul of this library", "f32", thread_pool().threads(), Cause::library}, flops,
        [&] { matmul(a_, b_); });
  }

  void climb_device(Ladder& ladder) {
    GpuClimb climbed = climb_gpu(options_.gpu_size);
    ladder.gpu = std::move(climbed.name);
    ladder.gpu_peak_flops_per_second = climbed.peak_flops_per_second;
    for (Rung& rung : climbed.rungs) rungs_.push_back(std::move(rung));
  }

  std::vector<Rung> take() { return std::move(rungs_); }

 private:
  static constexpr int kFewestTrials = 3;
  static constexpr double kTrialSeconds = 0.3;
  LadderOptions options_;
  Tensor a_, b_, c_;
  std::vector<Rung> rungs_;
  static inline volatile double sink = 0;  // so that no product is left out
};

const Rung* find_rung(const std::vector<Rung>& rungs, std::string_view name) {
  for (const Rung& rung : rungs) {
    if (rung.name == name && rung.flops_per_second > 0) return &rung;
  }
  return nullptr;
}

}  // namespace

std::string_view to_text(Cause cause) {
  constexpr std::array<std::string_view, 9> names = {
      "interpreter", "boxing", "cache",        "registers",     "SIMD",
      "cores",       "GPU",    "matrix units", "library kernel"};
  return names[static_cast<size_t>(cause)];
}

std::string_view meaning(Cause cause) {
  constexpr std::array<std::string_view, 9> meanings = {
      "bytecode, and types looked up at every step",
      "a number on the heap behind a virtual call",
      "operands from memory again and again",
      "results written and read at every step",
      "one number an instruction",
      "one thread",
      "the processor in place of a naive kernel on a GPU",
      "f32 on ordinary units in place of bf16 products of tiles",
      "what tuning has beyond these rungs: copies and products in other instructions, sizes by "
      "shape"};
  return meanings[static_cast<size_t>(cause)];
}

std::string LadderClaim::verdict() const {
  if (!is_measured) return "not measured here";
  return measured < least ? "less" : measured > most ? "more" : "holds";
}

std::vector<LadderClaim> Ladder::claims() const {
  const auto claim = [&](const char* what, const char* from, const char* to, double least,
                         double most) {
    const Rung *low = find_rung(rungs, from), *high = find_rung(rungs, to);
    LadderClaim made{.what = what, .from = from, .to = to, .least = least, .most = most};
    made.is_measured = low && high;
    if (made.is_measured)
      made.measured = std::log10(high->flops_per_second / low->flops_per_second);
    return made;
  };
  return {claim("Python to C", "Python", "naive C", 2, 3),
          claim("C to SIMD and all cores", "naive C", "brrr", 2, 3),
          claim("CPU to GPU", "brrr", "brrr on the GPU", 2, 4)};
}

std::vector<CauseShare> Ladder::shares() const {
  std::map<Cause, CauseShare> found;
  const Rung* below = nullptr;
  double all = 0;
  for (const Rung& rung : rungs) {
    if (!rung.is_here() || rung.is_aside) continue;
    if (below) {
      const double factor = rung.flops_per_second / below->flops_per_second;
      CauseShare& share = found.try_emplace(rung.cause, CauseShare{rung.cause}).first->second;
      share.factor *= factor;
      share.steps += join_text(share.steps.empty() ? "" : ", ", below->name, " > ", rung.name);
      all += std::log(factor);
    }
    below = &rung;
  }
  std::vector<CauseShare> result;
  for (auto& [cause, share] : found) {
    share.share = std::log(share.factor) / all;
    result.push_back(std::move(share));
  }
  return result;
}

double Ladder::peak_of(const Rung& rung) const {
  return rung.is_gpu() ? gpu_peak_flops_per_second : peak_flops_per_second;
}

double Ladder::factor(size_t rung) const {
  for (size_t below = rung; below-- > 0;) {
    if (rungs[below].is_here() && !rungs[below].is_aside)
      return rungs[rung].flops_per_second / rungs[below].flops_per_second;
  }
  return 0;
}

void Ladder::raise_peaks() {
  for (const Rung& rung : rungs) {
    double& peak = rung.is_gpu() ? gpu_peak_flops_per_second : peak_flops_per_second;
    peak = std::max(peak, rung.flops_per_second);
  }
}

double Ladder::slowest() const {
  for (const Rung& rung : rungs) {
    if (rung.flops_per_second > 0) return rung.flops_per_second;
  }
  return 0;
}
double Ladder::fastest() const {
  double best = 0;
  for (const Rung& rung : rungs) best = std::max(best, rung.flops_per_second);
  return best;
}

Ladder climb(const LadderOptions& options) {
  Climber climber(options);
  const double peak_before =
      hardware::measure_peak(DType::f32).value();  // and after: one of them may be disturbed
  climber.climb_interpreters();
  climber.climb_loops();
  climber.climb_libraries();
  Ladder ladder{
      .machine = hardware::cpu_name(),
      .gpu = {},
      .threads = thread_pool().threads(),
      .peak_flops_per_second = std::max(peak_before, hardware::measure_peak(DType::f32).value()),
      .rungs = {}};
  climber.climb_device(ladder);
  ladder.rungs = climber.take();
  ladder.raise_peaks();
  return ladder;
}

}  // namespace brrr::plan
