// Where the rates of a prediction come from: a file, the file of this machine, the hardware table, or,
// when there is none, measurements made on the spot.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "brrr/cli/machine_rates.h"
#include "brrr/compiler/target.h"
#include "brrr/hardware/rates.h"

namespace brrr::cli {

struct RatesOption {
  std::string file;      // --rates
  std::string hardware;  // --hardware
};
void add_rates_option(CLI::App& command, RatesOption& option);

// Of the target: a GPU that is not here has the rates of the hardware table. A machine without stored rates has
// those of its peaks, which are measured now.
hardware::Rates find_rates(const RatesOption& option, const compiler::Target& target);
// The same, but a machine without stored rates is measured once, in two seconds, and remembered.
hardware::Rates find_or_measure_rates(const RatesOption& option, const compiler::Target& target,
                                      const MeasureNotes& notes);

}  // namespace brrr::cli
