// Where the rates of a prediction come from: a file, the file of this machine, the hardware table, or,
// when there is none, peaks measured on the spot.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "brrr/compiler/target.h"
#include "brrr/hardware/rates.h"

namespace brrr::cli {

struct RatesOption {
  std::string file;      // --rates
  std::string hardware;  // --hardware
};
void add_rates_option(CLI::App& command, RatesOption& option);

// Of the target: a GPU that is not here has the rates of the hardware table.
Rates find_rates(const RatesOption& option, const Target& target);
// The same for a command that has other things to do: without a file, peaks over little memory, measured in
// a fraction of a second.
Rates find_rates_quickly(const RatesOption& option, const Target& target);
// $XDG_CACHE_HOME/brrr or ~/.cache/brrr, one file for each machine and number of threads, or for each GPU:
// those of the default device.
std::string machine_rates_path();

}  // namespace brrr::cli
