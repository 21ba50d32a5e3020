#include "brrr/cli/rates_option.h"

#include <cstdlib>
#include <filesystem>

#include "brrr/base/thread_pool.h"
#include "brrr/cost/calibrate.h"
#include "brrr/device/default_device.h"
#include "brrr/device/gpu_info.h"
#include "brrr/hardware/hardware.h"
#include "brrr/hardware/measure.h"
#include "brrr/plan/gpu_rates.h"

namespace brrr::cli {

namespace {

bool is_gpu() { return default_device().is_accelerator(); }

std::string gpu_name() { return list_gpus().gpus[default_device().index].name; }

// By the name that the driver gives; throws Error where the table does not have it.
Rates rates_of_gpu() { return own_gpu_rates(find_gpu(device_from_driver_name(gpu_name()))); }

}  // namespace

void add_rates_option(CLI::App& command, RatesOption& option) {
  auto* file = command.add_option("--rates", option.file, "File of `brrr calibrate`");
  command
      .add_option("--hardware", option.hardware,
                  "Price on a device of the hardware table, such as H100 (uncalibrated)")
      ->excludes(file);
}

std::string machine_rates_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  check(cache || home, "neither XDG_CACHE_HOME nor HOME is set; name a file with --out or --rates");
  const std::string folder = cache ? cache : join_text(home, "/.cache");
  std::string machine =
      is_gpu() ? gpu_name() : join_text(cpu_name(), " ", thread_pool().threads(), " threads");
  for (char& c : machine) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  }
  return join_text(folder, "/brrr/rates-", machine, ".json");
}

Rates find_rates(const RatesOption& option, const Target& target) {
  if (!option.hardware.empty()) return own_gpu_rates(find_gpu(option.hardware));
  if (!option.file.empty()) return load_rates(option.file);
  if (is_planned_only(target)) return own_gpu_rates(find_gpu(target.gpu));
  const std::string path = machine_rates_path();
  if (std::filesystem::exists(path)) return load_rates(path);
  return is_gpu() ? rates_of_gpu() : rough_rates();
}

Rates find_rates_quickly(const RatesOption& option, const Target& target) {
  constexpr Bytes kPerThread = 16_MiB;
  constexpr double kLaunchSeconds = 3e-7;
  const bool is_given = !option.hardware.empty() || !option.file.empty();
  if (is_given || is_planned_only(target) || is_gpu() ||
      std::filesystem::exists(machine_rates_path()))
    return find_rates(option, target);
  Rates rates =
      rates_from_peaks(cpu_name(), {.flops_per_second = measure_peak().value(),
                                    .bytes_per_second = measure_cache(kPerThread).copy.value(),
                                    .launch_seconds = kLaunchSeconds});
  rates.source = "peaks measured now, of memory over 16 MiB a thread; no family was";
  rates.packs_operands = true;
  return rates;
}

}  // namespace brrr::cli
