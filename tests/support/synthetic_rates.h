// Rates with round numbers, so that predictions can be worked out by hand.
#pragma once

#include "brrr/hardware/rates.h"

namespace brrr {

// 100 GFLOP/s in products, 1 G elements/s in every tile, 10 GB/s from memory, 100 GB/s for data used
// within the last MiB, 1 us for a call; one thread.
inline hardware::Rates synthetic_rates() {
  hardware::Rates rates = hardware::rates_from_peaks(
      "synthetic", {.flops_per_second = 100e9, .bytes_per_second = 10e9, .launch_seconds = 1e-6});
  rates.grids["tile.other"] = hardware::constant_rate("element/s", 1e9);
  for (const char* family : {"bandwidth", "optimizer"})
    rates.grids[family] = {.unit = "byte/s",
                           .axes = {{"distance", {1 << 20, (1 << 20) + 1}}},
                           .values = {100e9, 10e9}};
  return rates;
}

}  // namespace brrr
