// brrr devices: what this machine has, and what it really does.
#include <hwy/targets.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "brrr/account/measure.h"
#include "brrr/base/thread_pool.h"
#include "brrr/cli/commands.h"
#include "brrr/device/gpu_info.h"
#include "brrr/report/table.h"

namespace brrr::cli {
namespace {

// Which of the compiled variants kernels use here.
std::string vector_target() {
  const auto targets = hwy::SupportedTargets();
  return (targets & HWY_AVX3) != 0 ? "AVX-512" : (targets & HWY_AVX2) != 0 ? "AVX2" : "baseline";
}

struct CpuRates {
  FlopsPerSecond f32, f64;
  MemoryRates memory;
  double ridge() const { return f32.value() / memory.read.value(); }
};

CpuRates measure_cpu_rates() {
  return {measure_peak(DType::f32), measure_peak(DType::f64), measure_memory()};
}

void print_json(const CpuRates& rates) {
  nlohmann::json result{{"cpu",
                         {{"name", cpu_name()},
                          {"threads", thread_pool().threads()},
                          {"vectors", vector_target()},
                          {"measured_f32_flops_per_second", rates.f32.value()},
                          {"measured_f64_flops_per_second", rates.f64.value()},
                          {"measured_read_bytes_per_second", rates.memory.read.value()},
                          {"measured_write_bytes_per_second", rates.memory.write.value()},
                          {"measured_copy_bytes_per_second", rates.memory.copy.value()},
                          {"ridge_flops_per_byte", rates.ridge()}}},
                        {"gpus", nlohmann::json::array()}};
  const GpuList list = list_gpus();
  for (const GpuInfo& gpu : list.gpus) {
    result["gpus"].push_back({{"name", gpu.name},
                              {"compute_capability", join_text(gpu.major, ".", gpu.minor)},
                              {"multiprocessors", gpu.multiprocessors},
                              {"clock_mhz", gpu.clock_mhz},
                              {"memory_bytes", gpu.memory.value()},
                              {"free_bytes", gpu.free_memory.value()},
                              {"l2_bytes", gpu.l2_cache.value()}});
  }
  if (list.gpus.empty()) result["no_gpu_because"] = list.reason;
  std::puts(result.dump(1).c_str());
}

void print_tables(const CpuRates& rates) {
  Table cpu({"cpu", cpu_name()});
  cpu.row("threads", thread_pool().threads());
  cpu.row("vectors", vector_target());
  cpu.row("f32 peak, measured", to_text(rates.f32));
  cpu.row("f64 peak, measured", to_text(rates.f64));
  cpu.row("memory read, measured", to_text(rates.memory.read));
  cpu.row("memory write, measured", to_text(rates.memory.write));
  cpu.row("memory copy, measured", to_text(rates.memory.copy));
  cpu.row("ridge point",
          join_text(std::lround(rates.ridge()), " FLOP per byte: below it memory is the bound"));
  std::fputs(cpu.text().c_str(), stdout);
  const GpuList list = list_gpus();
  if (list.gpus.empty()) {
    std::printf("\nno GPU: %s\n", list.reason.c_str());
    return;
  }
  std::puts("");
  Table gpus({"gpu", "name", "sm", "multiprocessors", "clock", "memory", "free", "L2"});
  for (size_t i = 0; i < list.gpus.size(); ++i) {
    const GpuInfo& gpu = list.gpus[i];
    gpus.row(join_text("cuda:", i), gpu.name, join_text(gpu.major, ".", gpu.minor),
             gpu.multiprocessors, join_text(gpu.clock_mhz, " MHz"), to_text(gpu.memory),
             to_text(gpu.free_memory), to_text(gpu.l2_cache));
  }
  std::fputs(gpus.text().c_str(), stdout);
}

}  // namespace

void add_devices(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("devices", "Show the CPU and GPUs of this machine, with measured peaks");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->footer("Example:\n  brrr devices --json");
  command->callback([json] {
    const CpuRates rates = measure_cpu_rates();
    *json ? print_json(rates) : print_tables(rates);
  });
}

}  // namespace brrr::cli
