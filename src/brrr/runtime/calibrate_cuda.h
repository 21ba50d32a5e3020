// Measures how fast a GPU runs what predictions are made of: launches inside a captured program, memory by
// how long ago it was touched, products and attention by their sizes.
#pragma once

#include <functional>

#include "brrr/account/rates.h"
#include "brrr/device/device.h"

namespace brrr {

struct CalibrateCudaOptions {
  int rounds = 5;                                                // medians count
  std::function<void(int case_number, int cases)> on_case = {};  // before each
};
Rates calibrate_cuda(Device device, const CalibrateCudaOptions& options = {});

}  // namespace brrr
