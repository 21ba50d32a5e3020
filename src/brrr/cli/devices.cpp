// brrr devices: what this machine has, and what it really does.
#include <hwy/targets.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "brrr/base/thread_pool.h"
#include "brrr/cli/commands.h"
#include "brrr/device/gpu_info.h"
#include "brrr/hardware/hardware.h"
#include "brrr/hardware/measure.h"
#include "brrr/hardware/measure_cuda.h"
#include "brrr/report/gpu_state.h"
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
  hardware::MemoryRates memory;
  double ridge() const { return f32.value() / memory.read.value(); }
};

CpuRates measure_cpu_rates() {
  return {hardware::measure_peak(DType::f32), hardware::measure_peak(DType::f64),
          hardware::measure_memory()};
}

// Measured products, the vendor's promise beside each, and memory.
struct GpuRates {
  std::vector<std::optional<FlopsPerSecond>> products;  // in the order of kProductKinds
  hardware::GpuMemoryRates memory;
  hardware::TransferRates transfers;
  // FLOPs a byte at which bf16 products and memory take the same time.
  std::optional<double> ridge() const {
    const auto& bf16 = products[static_cast<size_t>(hardware::ProductKind::bf16)];
    return bf16 ? std::optional(bf16->value() / memory.read.value()) : std::nullopt;
  }
};

GpuRates measure_gpu_rates(int device) {
  constexpr hardware::ProductSize kSize{.m = 8192, .n = 8192, .k = 8192};
  GpuRates rates{.products = {},
                 .memory = hardware::measure_gpu_memory(device),
                 .transfers = hardware::measure_transfers(device)};
  for (hardware::ProductKind kind : hardware::kProductKinds) {
    const std::optional<Seconds> seconds = hardware::time_product(device, kind, kSize);
    rates.products.push_back(seconds ? std::optional(kSize.flops() / *seconds) : std::nullopt);
  }
  return rates;
}

// The table's name of a GPU, or nothing where it is not listed.
std::string_view listed_name(const GpuInfo& gpu) {
  try {
    return hardware::device_from_driver_name(gpu.name);
  } catch (const Error&) {
    return "";
  }
}

nlohmann::json rates_json(const GpuInfo& gpu, const GpuRates& rates) {
  nlohmann::json result{
      {"read_bytes_per_second", rates.memory.read.value()},
      {"copy_bytes_per_second", rates.memory.copy.value()},
      {"to_device_pinned_bytes_per_second", rates.transfers.to_device_pinned.value()},
      {"to_host_pinned_bytes_per_second", rates.transfers.to_host_pinned.value()},
      {"to_device_pageable_bytes_per_second", rates.transfers.to_device_pageable.value()},
      {"to_host_pageable_bytes_per_second", rates.transfers.to_host_pageable.value()}};
  if (const auto ridge = rates.ridge()) result["ridge_flops_per_byte"] = *ridge;
  for (hardware::ProductKind kind : hardware::kProductKinds) {
    const std::string name(hardware::product_name(kind));
    if (const auto& rate = rates.products[static_cast<size_t>(kind)])
      result["measured_flops_per_second"][name] = rate->value();
    if (const auto promised = hardware::promised_product_rate(listed_name(gpu), kind))
      result["promised_flops_per_second"][name] = promised->value();
  }
  return result;
}

void print_gpu_rates(int device, const GpuInfo& gpu) {
  const GpuRates rates = measure_gpu_rates(device);
  report::Table table({join_text("cuda:", device), "measured", "promised"});
  for (hardware::ProductKind kind : hardware::kProductKinds) {
    const auto& rate = rates.products[static_cast<size_t>(kind)];
    const auto promised = hardware::promised_product_rate(listed_name(gpu), kind);
    table.row(join_text(hardware::product_name(kind), " product 8192^3"),
              rate ? to_text(*rate) : "none", promised ? to_text(*promised) : "not listed");
  }
  const std::string_view listed = listed_name(gpu);
  const std::string bandwidth =
      listed.empty() ? std::string("not listed") : to_text(hardware::find_gpu(listed).bandwidth);
  table.row("memory read", to_text(rates.memory.read), bandwidth);
  table.row("memory copy, read and written", to_text(rates.memory.copy), bandwidth);
  table.row("host to device, pinned", to_text(rates.transfers.to_device_pinned), "");
  table.row("host to device, pageable", to_text(rates.transfers.to_device_pageable), "");
  table.row("device to host, pinned", to_text(rates.transfers.to_host_pinned), "");
  table.row("device to host, pageable", to_text(rates.transfers.to_host_pageable), "");
  if (const auto ridge = rates.ridge())
    table.row("ridge point, bf16", join_text(std::lround(*ridge), " FLOP per byte"), "");
  std::printf("\n%s", table.text().c_str());
}

void print_json(const CpuRates& rates) {
  nlohmann::json result{{"cpu",
                         {{"name", hardware::cpu_name()},
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
  for (size_t i = 0; i < list.gpus.size(); ++i) {
    const GpuInfo& gpu = list.gpus[i];
    result["gpus"].push_back({{"name", gpu.name},
                              {"compute_capability", join_text(gpu.major, ".", gpu.minor)},
                              {"multiprocessors", gpu.multiprocessors},
                              {"clock_mhz", gpu.clock_mhz},
                              {"memory_bytes", gpu.memory.value()},
                              {"free_bytes", gpu.free_memory.value()},
                              {"l2_bytes", gpu.l2_cache.value()},
                              {"shared_bytes_per_block", gpu.shared_memory_per_block.value()}});
    result["gpus"].back()["now"] = report::gpu_state_json(read_gpu_state(gpu.bus_id));
    result["gpus"].back()["rates"] = rates_json(gpu, measure_gpu_rates(static_cast<int>(i)));
  }
  if (list.gpus.empty()) result["no_gpu_because"] = list.reason;
  std::puts(result.dump(1).c_str());
}

void print_tables(const CpuRates& rates) {
  report::Table cpu({"cpu", hardware::cpu_name()});
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
  report::Table gpus({"gpu", "name", "sm", "multiprocessors", "clock", "memory", "free", "L2"});
  for (size_t i = 0; i < list.gpus.size(); ++i) {
    const GpuInfo& gpu = list.gpus[i];
    gpus.row(join_text("cuda:", i), gpu.name, join_text(gpu.major, ".", gpu.minor),
             gpu.multiprocessors, join_text(gpu.clock_mhz, " MHz"), to_text(gpu.memory),
             to_text(gpu.free_memory), to_text(gpu.l2_cache));
  }
  std::fputs(gpus.text().c_str(), stdout);
  for (size_t i = 0; i < list.gpus.size(); ++i) {
    const std::string state = report::gpu_state_text(read_gpu_state(list.gpus[i].bus_id));
    std::printf("\ncuda:%zu\n%s", i, state.c_str());
    print_gpu_rates(static_cast<int>(i), list.gpus[i]);
  }
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
