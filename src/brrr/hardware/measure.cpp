#include "brrr/hardware/measure.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <vector>

#include "brrr/base/error.h"
#include "brrr/base/thread_pool.h"
#include "brrr/hardware/measure_cpu.h"
#include "brrr/tensor/tensor.h"

namespace brrr::hardware {
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

// The best of `trials` calls, or of fewer where they would take longer than a quarter of a second: a
// sanitizer makes each fifty times as long.
Seconds time_best(const std::function<void()>& work, int trials) {
  constexpr Seconds kLimit(0.25);
  constexpr int kLeastTrials = 3;
  Seconds best = time_each(work, 1).front(), spent = best;
  for (int i = 1; i < trials && (spent < kLimit || i < kLeastTrials); ++i) {
    const Seconds time = time_once(work);
    best = std::min(best, time);
    spent += time;
  }
  return best;
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

// Two arrays of `pieces` pieces. One thread goes `repeats` times through a piece before it takes
// another.
struct Arrays {
  int64_t pieces, piece_floats;
  int64_t repeats = 1;
  int trials = 3;
  Stores stores;
};

MemoryRates measure_arrays(const Arrays& arrays) {
  CategoryScope scope(Category::workspace);
  const int64_t length = arrays.piece_floats;
  const Tensor source = empty({arrays.pieces * length}), target = empty({arrays.pieces * length});
  const auto* x = source.data<float>();
  auto* y = target.data<float>();
  const auto time = [&](const auto& body) {
    return time_best(
        [&] {
          thread_pool().for_each_piece(arrays.pieces, [&](int64_t piece) {
            for (int64_t i = 0; i < arrays.repeats; ++i) body(piece * length);
          });
        },
        arrays.trials);
  };
  source.fill(1.0);  // pages of zeros that were never written are all one page
  const Seconds read = time([&](int64_t at) { use(sum_floats(x + at, length)); });
  const Seconds write = time([&](int64_t at) { fill_floats(y + at, 1, length, arrays.stores); });
  const Seconds copy =
      time([&](int64_t at) { copy_floats(y + at, x + at, length, arrays.stores); });
  const Bytes bytes = source.bytes() * arrays.repeats;
  return {.read = bytes / read,
          .write = bytes / write,
          .copy = bytes * 2 / copy,
          .working_set = source.bytes()};
}

}  // namespace

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "cpu";
}

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

MemoryRates measure_memory(Stores stores) {
  const int64_t pieces =
      memory_working_set().value() / (kPieceFloats * static_cast<int64_t>(sizeof(float)));
  return measure_arrays({.pieces = pieces, .piece_floats = kPieceFloats, .stores = stores});
}

MemoryRates measure_cache(Bytes per_thread) {
  // sum_floats takes 128 at a time; the repeats of a trial take about a millisecond.
  const int64_t floats = per_thread.value() / (2 * 128 * static_cast<int64_t>(sizeof(float))) * 128;
  check(floats > 0, "measure_cache: two arrays of at least 512 B take 1 KiB, not ", per_thread);
  return measure_arrays({.pieces = thread_pool().threads(),
                         .piece_floats = floats,
                         .repeats = std::max<int64_t>(1, (int64_t{1} << 23) / floats),
                         .trials = 30,
                         .stores = Stores::ordinary});
}

}  // namespace brrr::hardware
