// Measures how fast this machine runs each family of kernels. Every round visits every case once, and
// the median over rounds counts: a machine that slows down for a second slows all families alike
// instead of one of them. A caller can put other work between rounds, so that both see the same machine.
#pragma once

#include <functional>
#include <limits>
#include <memory>

#include "brrr/cost/calibrate_cases.h"

namespace brrr::cost {

class Calibrator {
 public:
  explicit Calibrator(CalibrationSize size = CalibrationSize::full);
  ~Calibrator();
  Calibrator(const Calibrator&) = delete;
  Calibrator& operator=(const Calibrator&) = delete;

  void round();
  int rounds() const;
  hardware::Rates rates() const;  // medians of the rounds so far; at least one

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct CalibrateOptions {
  int rounds = 7;
  CalibrationSize size = CalibrationSize::full;
  // No round begins that would end later than this, judged by the last one; the first always runs.
  double most_seconds = std::numeric_limits<double>::infinity();
  std::function<void(int round)> on_round = {};  // before each
};
hardware::Rates calibrate(const CalibrateOptions& options = {});

// Peaks of arithmetic and memory, measured in half a second, and no families: marked uncalibrated.
hardware::Rates rough_rates();

}  // namespace brrr::cost
