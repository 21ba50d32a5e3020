// The limits that kernels are held against, measured: multiply-adds between registers, and reading,
// writing and copying within the L2 caches and through memory, with one thread and with two.
// Prints JSON; takes about ten seconds. Its output on an idle machine belongs in bench/results.
#include <cstdio>
#include <string>

#include "brrr/base/thread_pool.h"
#include "brrr/hardware/measure.h"
#include "harness.h"

namespace {

using namespace brrr;

constexpr Bytes kCachePerThread = 1_MiB;  // half of a 2 MiB L2: what else runs needs a place too

// A shared machine only ever makes things slower, so of several measurements the best counts.
template <typename Measure>
hardware::MemoryRates best_of(int times, Measure measure) {
  hardware::MemoryRates best = measure();
  for (int i = 1; i < times; ++i) {
    const hardware::MemoryRates next = measure();
    best.read = std::max(best.read, next.read);
    best.write = std::max(best.write, next.write);
    best.copy = std::max(best.copy, next.copy);
  }
  return best;
}

void print_rates(const char* name, const hardware::MemoryRates& rates, const char* end) {
  std::printf(
      "   \"%s\": {\"read_bytes_per_second\": %.4g, \"write_bytes_per_second\": %.4g, "
      "\"copy_bytes_per_second\": %.4g, \"array_bytes\": %lld}%s\n",
      name, rates.read.value(), rates.write.value(), rates.copy.value(),
      static_cast<long long>(rates.working_set.value()), end);
}

void print_limits(int threads, const char* end) {
  set_num_threads(threads);
  std::printf("  {\n   \"threads\": %d,\n", threads);
  std::printf("   \"f32_flops_per_second\": %.4g,\n   \"f64_flops_per_second\": %.4g,\n",
              hardware::measure_peak(DType::f32).value(),
              hardware::measure_peak(DType::f64).value());
  print_rates("l2", best_of(3, [] { return hardware::measure_cache(kCachePerThread); }), ",");
  print_rates("memory",
              best_of(2, [] { return hardware::measure_memory(hardware::Stores::ordinary); }), ",");
  print_rates("memory_streaming",
              best_of(2, [] { return hardware::measure_memory(hardware::Stores::streaming); }), "");
  std::printf("  }%s\n", end);
}

}  // namespace

int main() {
  std::printf("{\n \"benchmark\": \"peaks_bench\",\n \"cpu\": \"%s\",\n \"compiler\": \"%s\",\n",
              hardware::cpu_name().c_str(), bench::compiler().c_str());
  std::puts(" \"limits\": [");
  print_limits(1, ",");
  print_limits(bench::kThreads, "");
  std::puts(" ]\n}");
}
