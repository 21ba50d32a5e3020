#include "brrr/account/measure.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "brrr/account/measure_cpu.h"
#include "brrr/base/error.h"
#include "brrr/base/thread_pool.h"
#include "brrr/tensor/tensor.h"

namespace brrr {
namespace {

Seconds time_once(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

std::vector<Seconds> time_each(const std::function<void()>& work, int trials) {
  check(trials >= 1, "timing needs at least one trial, not ", trials);
  work();  // page faults, caches, the clock's climb from idle
  std::vector<Seconds> times;
  for (int i = 0; i < trials; ++i) times.push_back(time_once(work));
  std::sort(times.begin(), times.end());
  return times;
}

Seconds time_best(const std::function<void()>& work, int trials) {
  return time_each(work, trials).front();
}

// Results nobody asks for; writing them to an atomic keeps the loops that made them.
void use(double value) {
  static std::atomic<double> sink;
  sink.store(value, std::memory_order_relaxed);
}

Bytes memory_working_set() {
  const int64_t last_cache = std::max<int64_t>(0, sysconf(_SC_LEVEL3_CACHE_SIZE));
  return std::clamp(Bytes(2 * last_cache), Bytes(64_MiB), Bytes(1_GiB));
}

constexpr int64_t kPieceFloats = int64_t{1} << 18;  // 1 MiB: long enough to hide the hand-over

}  // namespace

Seconds time_median(const std::function<void()>& work, int trials) {
  const std::vector<Seconds> times = time_each(work, trials);
  const size_t middle = times.size() / 2;
  return times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
}

FlopsPerSecond measure_peak(DType dtype) {
  check(dtype == DType::f32 || dtype == DType::f64,
        "measure_peak: the cpu computes in f32 and f64, not in ", dtype);
  constexpr int64_t kSteps = 50'000;  // a tenth of a millisecond
  constexpr int64_t kPiecesPerThread =
      16;                      // a thread that lost its core for a while leaves them to others
  constexpr int kTrials = 60;  // some of them meet an idle machine
  const bool single = dtype == DType::f32;
  const int64_t pieces = kPiecesPerThread * thread_pool().threads();
  const Seconds time = time_best(
      [&] {
        thread_pool().for_each_piece(pieces, [&](int64_t) {
          use(single ? static_cast<double>(run_f32_chains(kSteps)) : run_f64_chains(kSteps));
        });
      },
      kTrials);
  const int64_t step_flops = single ? f32_chain_flops_per_step() : f64_chain_flops_per_step();
  return Flops(step_flops * kSteps * pieces) / time;
}

MemoryRates measure_memory() {
  constexpr int kTrials = 3;
  CategoryScope scope(Category::workspace);
  const Bytes size = memory_working_set();
  const int64_t pieces = size.value() / (kPieceFloats * static_cast<int64_t>(sizeof(float)));
  const int64_t count = pieces * kPieceFloats;
  const Tensor source = empty({count}), target = empty({count});
  const auto* x = source.data<float>();
  auto* y = target.data<float>();
  const auto each_piece = [&](const auto& body) { thread_pool().for_each_piece(pieces, body); };
  each_piece([&](int64_t piece) {  // pages of zeros that were never written are all one page
    std::fill_n(source.data<float>() + piece * kPieceFloats, kPieceFloats, 1.0F);
  });
  const Seconds read_time = time_best(
      [&] {
        each_piece([&](int64_t piece) { use(sum_floats(x + piece * kPieceFloats, kPieceFloats)); });
      },
      kTrials);
  const Seconds copy_time = time_best(
      [&] {
        each_piece([&](int64_t piece) {
          copy_floats(y + piece * kPieceFloats, x + piece * kPieceFloats, kPieceFloats);
        });
      },
      kTrials);
  const Bytes bytes = source.bytes();
  return {.read = bytes / read_time, .copy = (bytes * 2) / copy_time, .working_set = bytes};
}

}  // namespace brrr
