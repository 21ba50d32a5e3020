// How fast a run is and what bounds it, from its log and from what was predicted before it began.
#pragma once

#include <string>
#include <vector>

#include "brrr/run/run_log.h"

namespace brrr::runs {

struct SpeedRegime {
  double step_seconds = 0;  // the median; NaN before the first steps
  double tokens_per_second = 0;
  double predicted_step_seconds = 0;  // 0: not predicted
  double mfu = 0;                     // the median; 0: not known
  double share[3] = {};               // of the predicted time: compute, bandwidth, overhead
  double slowdown = 1;                // the last steps beside the median

  std::string what;               // "Bandwidth-bound: ..."
  std::string why;                // measured beside predicted
  std::vector<std::string> next;  // what to do
};

SpeedRegime judge_speed(const RunLog& run);
std::string to_text(const SpeedRegime& regime);

}  // namespace brrr::runs
