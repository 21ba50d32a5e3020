#include "brrr/cli/rates_option.h"

#include <optional>

#include "brrr/cost/calibrate.h"
#include "brrr/device/default_device.h"
#include "brrr/hardware/hardware.h"
#include "brrr/plan/gpu_rates.h"

namespace brrr::cli {

namespace {

// What the options and the target say; nothing where this machine is to be priced.
std::optional<hardware::Rates> named_rates(const RatesOption& option,
                                           const compiler::Target& target) {
  if (!option.hardware.empty()) return plan::own_gpu_rates(hardware::find_gpu(option.hardware));
  if (!option.file.empty()) return hardware::load_rates(option.file);
  if (compiler::is_planned_only(target)) return plan::own_gpu_rates(hardware::find_gpu(target.gpu));
  return {};
}

}  // namespace

void add_rates_option(CLI::App& command, RatesOption& option) {
  auto* file = command.add_option("--rates", option.file, "File of `brrr calibrate`");
  command
      .add_option("--hardware", option.hardware,
                  "Price on a device of the hardware table, such as H100 (uncalibrated)")
      ->excludes(file);
}

hardware::Rates find_rates(const RatesOption& option, const compiler::Target& target) {
  if (std::optional<hardware::Rates> named = named_rates(option, target)) return *std::move(named);
  if (std::optional<hardware::Rates> stored = stored_machine_rates()) return *std::move(stored);
  return default_device().is_accelerator() ? table_rates_of_gpu() : cost::rough_rates();
}

hardware::Rates find_or_measure_rates(const RatesOption& option, const compiler::Target& target,
                                      const MeasureNotes& notes) {
  if (std::optional<hardware::Rates> named = named_rates(option, target)) return *std::move(named);
  return stored_or_quick_rates(notes);
}

}  // namespace brrr::cli
