#include "brrr/hardware/mfu.h"

#include "brrr/base/error.h"

namespace brrr::hardware {

double mfu(FlopsPerSecond actual, FlopsPerSecond promised) {
  check(promised > FlopsPerSecond(0), "mfu: the promised speed is ", promised,
        "; it must be above zero");
  check(actual >= FlopsPerSecond(0), "mfu: the actual speed is ", actual,
        "; it cannot be negative");
  return actual / promised;
}

Seconds ideal_time(Flops work, FlopsPerSecond promised) {
  check(promised > FlopsPerSecond(0), "ideal_time: the promised speed is ", promised,
        "; it must be above zero");
  return work / promised;
}

Flops training_flops(double parameters, double tokens) { return Flops(6 * parameters * tokens); }

Seconds run_time(Flops work, const Cluster& cluster) {
  check(cluster.devices >= 1, "run_time: ", cluster.devices, " devices; at least one is needed");
  check(cluster.mfu > 0 && cluster.mfu <= 1, "run_time: an mfu of ", cluster.mfu,
        " is not in (0, 1]");
  return ideal_time(work, cluster.promised * (cluster.devices * cluster.mfu));
}

}  // namespace brrr::hardware
