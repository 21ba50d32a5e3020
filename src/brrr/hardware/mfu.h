// Model FLOPs utilisation: the speed that was reached over the speed that was promised.
//
// "Model" FLOPs are those the mathematics needs (2 m n k for a product), counted by CostCounter:
// work done twice to save memory does not raise it. A number above 1 means that the count or the
// promise is wrong. 0.5 and more is good for a training run.
#pragma once

#include "brrr/base/units.h"

namespace brrr::hardware {

double mfu(FlopsPerSecond actual, FlopsPerSecond promised);

// The time at full speed.
Seconds ideal_time(Flops work, FlopsPerSecond promised);

// Training a dense model: 2 FLOPs per parameter and token forward, 4 backward. Attention's products
// of activations come on top; they are small while the context is short beside 6 * width.
Flops training_flops(double parameters, double tokens);

struct Cluster {
  FlopsPerSecond promised;  // of one device
  double devices = 1;
  double mfu = 1;
};
Seconds run_time(Flops work, const Cluster& cluster);

}  // namespace brrr::hardware
