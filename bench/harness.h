// What the benchmarks share: medians, one number of threads, the facts that a result must carry, and
// kernels measured forward and forward with backward.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "brrr/base/thread_pool.h"
#include "brrr/brrr.h"

namespace brrr::bench {

inline constexpr int kThreads = 2;  // as in bench/peers

inline std::string compiler() {
#ifdef __clang__
  return std::string("clang ") + __clang_version__;
#else
  return std::string("g++ ") + __VERSION__;
#endif
}

// Facts for the report; then what BENCHMARK_MAIN does.
inline int run_all(int argc, char** argv) {
  set_num_threads(kThreads);
  benchmark::AddCustomContext("compiler", compiler());
  benchmark::AddCustomContext("threads", std::to_string(kThreads));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

// The median of single calls over a quarter of a second, after one that warms up: a neighbour's
// burst moves the mean, not the median. The peers do the same.
inline double median_seconds(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  constexpr double kSeconds = 0.25;
  constexpr size_t kFewest = 3;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  work();
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < kFewest || since(begin) < kSeconds) {
    const auto start = Clock::now();
    work();
    times.push_back(since(start));
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Registers a case. `make` gives the work to be timed; it is called when the case runs, so that only
// the operands of one case are in memory. `amount` of `unit` is what one call cannot do without.
inline void add_case(const std::string& name, const char* unit, double amount,
                     const std::function<std::function<void()>()>& make) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 const std::function<void()> work = make();
                                 for (auto _ : state) state.SetIterationTime(median_seconds(work));
                                 state.counters[unit] =
                                     benchmark::Counter(amount, benchmark::Counter::kIsRate);
                               })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

inline Tensor random_tensor(const Shape& shape, const char* name) {
  Random source(1);
  return normal(shape, source.stream(name));
}

// A kernel and its operands; `leaves` get gradients where the backward pass is measured.
struct Call {
  std::vector<Tensor> leaves;
  std::function<Tensor()> run;
};

// What a kernel cannot do without: bytes to and from memory, or FLOPs.
struct Floor {
  const char* unit;  // "bytes" or "flops"
  double forward, forward_backward;
};

// Registers <name>_forward, without a tape, and <name>_forward_backward, with a gradient of the
// result that is made before.
inline void add_kernel(const std::string& name, const Floor& floor,
                       const std::function<Call()>& make) {
  add_case(name + "_forward", floor.unit, floor.forward, [=]() -> std::function<void()> {
    return [call = make()] { benchmark::DoNotOptimize(call.run()); };
  });
  add_case(name + "_forward_backward", floor.unit, floor.forward_backward,
           [=]() -> std::function<void()> {
             const Call call = make();
             const Tensor dy = random_tensor(call.run().shape(), "dy");
             for (const Tensor& leaf : call.leaves) leaf.require_grad();
             return [=] {
               for (const Tensor& leaf : call.leaves) leaf.clear_grad();
               backward(call.run(), {.seed = dy});
             };
           });
}

}  // namespace brrr::bench
