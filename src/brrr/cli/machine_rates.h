// Rates of this machine, kept in the user's cache: one file per CPU and number of threads, or per GPU. `brrr calibrate`
// measures them in full. `brrr train` measures quick ones where there are none, so that its first prediction is not a
// guess. Full rates replace quick ones, never the other way round.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "brrr/hardware/rates.h"

namespace brrr::cli {

// Of the default device. Throws Error where the environment names no cache.
std::string machine_rates_path();

// Nothing where no file is there. Throws Error for a file that is damaged or of another machine.
std::optional<hardware::Rates> stored_machine_rates();

// A GPU of the hardware table, by the name that its driver gives; throws Error where the table lacks it.
hardware::Rates table_rates_of_gpu();

struct MeasureNotes {
  std::function<void(const std::string&)> progress;  // what happens now
  std::function<void(const std::string&)> warning;   // what went wrong, and what is done instead
};
// The stored rates, or quick ones, which are measured and stored now. What cannot be stored is used all the same.
hardware::Rates stored_or_quick_rates(const MeasureNotes& notes);

}  // namespace brrr::cli
