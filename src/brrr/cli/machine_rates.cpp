#include "brrr/cli/machine_rates.h"

#include <cctype>
#include <filesystem>

#include "brrr/base/error.h"
#include "brrr/base/thread_pool.h"
#include "brrr/cli/environment.h"
#include "brrr/cost/calibrate.h"
#include "brrr/cost/calibrate_cuda.h"
#include "brrr/device/default_device.h"
#include "brrr/device/gpu_info.h"
#include "brrr/hardware/hardware.h"
#include "brrr/hardware/measure.h"
#include "brrr/kernels/cuda/gemm/gemm_cuda.h"
#include "brrr/plan/gpu_rates.h"

namespace brrr::cli {
namespace {

constexpr double kQuickSeconds = 2;
constexpr int kQuickRounds = 5;

bool is_gpu() { return default_device().is_accelerator(); }

std::string gpu_name() {
  return list_gpus().gpus[static_cast<size_t>(default_device().index)].name;
}

// As calibration names it in the file.
std::string machine_name() {
  return is_gpu() ? gpu_name()
                  : join_text(hardware::cpu_name(), ", ", thread_pool().threads(), " threads");
}

// Another machine: a home that several machines share, or a file that was copied.
hardware::Rates load_machine_rates(const std::string& path) {
  hardware::Rates rates = hardware::load_rates(path);
  check(rates.machine == machine_name(), path, ": holds rates of \"", rates.machine,
        "\", and this machine is \"", machine_name(),
        "\"; run `brrr calibrate` to write the file anew");
  check(is_gpu() || rates.threads == thread_pool().threads(), path, ": was measured with ",
        rates.threads, " threads, and ", thread_pool().threads(),
        " run now; run `brrr calibrate` to write the file anew");
  return rates;
}

// Families that the two seconds did not reach, and arithmetics that they leave out, are those of the hardware table.
hardware::Rates quick_gpu_rates() {
  hardware::Rates rates = cost::calibrate_cuda(
      default_device(),
      {.rounds = 3, .size = cost::CalibrationSize::quick, .most_seconds = kQuickSeconds});
  for (const hardware::GpuSpec& gpu : hardware::known_gpus()) {
    for (const std::string& name : gpu.driver_names) {
      if (name != gpu_name()) continue;
      for (const auto& [family, grid] : plan::own_gpu_rates(gpu).grids)
        rates.grids.try_emplace(family, grid);
    }
  }
  return rates;
}

hardware::Rates measure_quick_rates(const MeasureNotes& notes) {
  notes.progress("measuring this machine (2 s, once)");
  if (!is_gpu())
    return cost::calibrate({.rounds = kQuickRounds,
                            .size = cost::CalibrationSize::quick,
                            .most_seconds = kQuickSeconds});
  try {
    hardware::Rates rates = quick_gpu_rates();
    kernels::gemm_choices().forget_uses();
    return rates;
  } catch (const Error& error) {
    // No room for its operands, or a library is missing: the run may still do.
    notes.warning(join_text("this GPU could not be measured (", error.what(),
                            "); its rates are those of the hardware table"));
    kernels::gemm_choices().forget_uses();
    return table_rates_of_gpu();
  }
}

// Full rates may have arrived while quick ones were measured; a damaged file is no loss.
bool holds_full_rates(const std::string& path) {
  std::error_code unreadable;
  try {
    return std::filesystem::exists(path, unreadable) &&
           hardware::load_rates(path).kind() == hardware::RatesKind::full;
  } catch (const Error&) {
    return false;
  }
}

void store_quick_rates(const hardware::Rates& rates, const MeasureNotes& notes) {
  if (rates.kind() != hardware::RatesKind::quick) return;
  try {
    const std::string path = machine_rates_path();
    check(!holds_full_rates(path), path, " holds full rates");
    hardware::save_rates(rates, path);
  } catch (const Error& error) {
    notes.warning(join_text(
        "the rates of this machine could not be kept, so the next run measures them again: ",
        error.what()));
  }
}

}  // namespace

std::string machine_rates_path() {
  const std::string folder = cache_folder();
  check(!folder.empty(),
        "neither XDG_CACHE_HOME nor HOME is set; set one of them, or name a file of rates");
  std::string machine =
      is_gpu() ? gpu_name()
               : join_text(hardware::cpu_name(), " ", thread_pool().threads(), " threads");
  for (char& c : machine) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  }
  return join_text(folder, "/rates-", machine, ".json");
}

std::optional<hardware::Rates> stored_machine_rates() {
  const std::string path = machine_rates_path();
  std::error_code unreadable;
  if (!std::filesystem::exists(path, unreadable)) return {};
  return load_machine_rates(path);
}

hardware::Rates table_rates_of_gpu() {
  return plan::own_gpu_rates(hardware::find_gpu(hardware::device_from_driver_name(gpu_name())));
}

hardware::Rates stored_or_quick_rates(const MeasureNotes& notes) {
  if (!cache_folder().empty()) {
    try {
      if (std::optional<hardware::Rates> stored = stored_machine_rates()) return *std::move(stored);
    } catch (const Error& error) {
      notes.warning(join_text("stored rates are not used: ", error.what()));
    }
  }
  const hardware::Rates rates = measure_quick_rates(notes);
  store_quick_rates(rates, notes);
  return rates;
}

}  // namespace brrr::cli
