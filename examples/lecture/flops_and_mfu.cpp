// FLOPs, the time they take, and how much of a machine that uses (MFU).
// FLOPs are counted from the nodes that run, not from a formula; the formula stands beside them.
#include <fmt/format.h>

#include <algorithm>

#include "brrr/base/thread_pool.h"
#include "brrr/brrr.h"
#include "brrr/hardware/hardware.h"
#include "brrr/hardware/measure.h"
#include "brrr/hardware/mfu.h"
#include "brrr/report/claims.h"

using namespace brrr;

namespace {

constexpr Seconds kDay(86400.0);

struct LinearSizes {
  int64_t batch, in, out;
};
constexpr LinearSizes kCpuSizes{1024, 256, 64}, kGpuSizes{16384, 32768, 8192};

int64_t linear_flops(const LinearSizes& sizes, DType dtype, Device device) {
  const Tensor x = empty({sizes.batch, sizes.in}, dtype, device);
  const Tensor w = empty({sizes.in, sizes.out}, dtype, device);
  CostCounter counter;
  matmul(x, w);
  return counter.total().flops;
}

bool magnitudes() {
  const FlopsPerSecond h100 = hardware::promised_rate("H100", DType::bf16).dense;
  report::Table table({"magnitudes", "FLOPs"});
  table.row("training GPT-3 (2020)", "3.14e23");
  table.row("training GPT-4, as speculated", "~2e25");
  table.row("once to be reported to the US government (revoked in 2025)", "1e26");
  fmt::print("{}\n", table.text());

  report::Claims claims(fmt::format("8 H100s at their promised {}", to_text(h100)));
  claims.near("7 days", h100 * 8 * (kDay * 7), Flops(4.7876e21), 1e-4);
  claims.near("14 days", h100 * 8 * (kDay * 14), Flops(9.5752e21), 1e-4);
  fmt::print("{}  The lecture's text says two weeks and its code computes one; both are here.\n\n",
             claims.text());
  return claims.all_hold();
}

// How long does a 70B model take on 15T tokens with 1024 H100s at an MFU of 0.5?
bool training_time() {
  const FlopsPerSecond h100 = hardware::promised_rate("H100", DType::bf16).dense;
  const Flops work = hardware::training_flops(70e9, 15e12);
  const hardware::Cluster cluster{.promised = h100, .devices = 1024, .mfu = 0.5};
  report::Claims claims("70e9 parameters, 15e12 tokens, 1024 H100s, MFU 0.5");
  claims.near("FLOPs: 6 x parameters x tokens", work, Flops(6.3e24), 1e-12);
  claims.near("FLOPs a day", Flops(work.value() / (hardware::run_time(work, cluster) / kDay)),
              Flops(4.37723136e22), 1e-9);
  claims.near("days", hardware::run_time(work, cluster) / kDay, 143.927, 1e-5);
  fmt::print("{}\n", claims.text());
  return claims.all_hold();
}

// y = x @ w takes one multiplication and one addition per triple (row, inner, column).
bool linear_model() {
  report::Claims claims("Linear model y = x @ w: 2 B D K FLOPs");
  claims.equal("B 1024, D 256, K 64, run on this CPU",
               linear_flops(kCpuSizes, DType::f32, Device::cpu()), 33'554'432);
  const int64_t large = linear_flops(kGpuSizes, DType::bf16, Device::null());
  claims.near("B 16384, D 32768, K 8192, on the null device", Flops(large), Flops(8.796093e12),
              1e-7);
  const Tensor a = ones({16, 32});
  CostCounter counter;
  a + a;
  claims.equal("sum of two 16 x 32 tensors: m n", counter.total().flops, 16 * 32);
  fmt::print("{}\n", claims.text());

  report::Claims times("The large one on an H100 that keeps its promise");
  times.near("bf16",
             hardware::ideal_time(Flops(large), hardware::promised_rate("H100", DType::bf16).dense),
             Seconds(8.889e-3), 1e-4);
  times.near("f32",
             hardware::ideal_time(Flops(large), hardware::promised_rate("H100", DType::f32).dense),
             Seconds(130.3e-3), 1e-3);
  fmt::print("{}\n", times.text());
  return claims.all_hold() && times.all_hold();
}

void promises() {
  report::Table table({"device", "dtype", "promised", "source"}, "What vendors promise (dense)");
  for (const char* device : {"A100", "H100"}) {
    for (const hardware::PeakRate& rate : hardware::find_gpu(device).peaks)
      table.row(device, hardware::to_text(rate.arithmetic), rate.dense, rate.source);
  }
  fmt::print("{}\n", table.text());
}

// The same on this machine, against the peak that it shows in registers.
void measured_mfu() {
  const FlopsPerSecond peak_f32 = hardware::measure_peak(DType::f32),
                       peak_f64 = hardware::measure_peak(DType::f64);
  const hardware::MemoryRates memory = hardware::measure_memory();
  report::Table machine({"this machine", ""});
  machine.row("threads", thread_pool().threads());
  machine.row("f32 multiply-adds in registers", peak_f32);
  machine.row("f64 multiply-adds in registers", peak_f64);
  machine.row("memory, reading", memory.read);
  machine.row("memory, copying (read + write)", memory.copy);
  machine.row("FLOPs per byte where the two balance (f32)",
              fmt::format("{:.1f}", peak_f32.value() / memory.read.value()));
  fmt::print("{}\n", machine.text());

  report::Table table({"y = x @ w", "dtype", "FLOPs", "time", "speed", "MFU"},
                      "Measured (median of 5)");
  for (const LinearSizes& sizes :
       {kCpuSizes, LinearSizes{512, 512, 512}, LinearSizes{1024, 1024, 1024}}) {
    for (DType dtype : {DType::f32, DType::f64}) {
      const Tensor x = ones({sizes.batch, sizes.in}, {.dtype = dtype});
      const Tensor w = ones({sizes.in, sizes.out}, {.dtype = dtype});
      const Flops work(linear_flops(sizes, dtype, Device::null()));
      const Seconds time = hardware::time_median([&] { matmul(x, w); });
      const double used = hardware::mfu(work / time, dtype == DType::f32 ? peak_f32 : peak_f64);
      table.row(fmt::format("{} x {} x {}", sizes.batch, sizes.in, sizes.out), dtype, work, time,
                work / time, fmt::format("{:.2f}", used));
    }
  }
  fmt::print(
      "{}  MFU here: counted FLOPs over time, against the measured peak of the same dtype.\n",
      table.text());
}

}  // namespace

int main() {
  promises();
  const bool good[] = {magnitudes(), training_time(), linear_model()};
  measured_mfu();  // belongs to this machine: nothing to compare it with
  return std::ranges::count(good, false) == 0 ? 0 : 1;
}
