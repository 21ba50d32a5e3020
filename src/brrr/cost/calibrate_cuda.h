// Measures how fast a GPU runs what predictions are made of: launches inside a captured program, memory by how long ago
// it was touched, copies between host and device, and the families of cost/calibrate_cuda_cases.h. Where programs are
// given, their products and attentions are measured too, each by itself at its own shape.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "brrr/compiler/lower/kernel_list.h"
#include "brrr/cost/calibrate_cases.h"
#include "brrr/device/device.h"
#include "brrr/hardware/rates.h"

namespace brrr::cost {

struct CalibrateCudaOptions {
  int rounds = 5;                                                // medians count
  std::function<void(int case_number, int cases)> on_case = {};  // before each
  std::vector<const compiler::KernelList*> programs = {};
  std::string programs_name = {};  // for people: "gpt2-124m, batch 64, seq 1024"
  CalibrationSize size = CalibrationSize::full;
  // Families whose turn comes later than this are left out; the first, products of f32, is always measured.
  double most_seconds = std::numeric_limits<double>::infinity();
};
hardware::Rates calibrate_cuda(Device device, const CalibrateCudaOptions& options = {});

}  // namespace brrr::cost
