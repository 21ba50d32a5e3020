// A run of a preset, as most tests of plans begin.
#pragma once

#include "brrr/plan/cluster/run_question.h"

namespace brrr {

inline plan::RunQuestion run_of(const std::string& model, const std::string& gpu, int64_t count) {
  plan::RunQuestion q;
  q.model_name = model;
  q.model = model_preset(model);
  q.tokens = 1e12;
  q.gpu = gpu;
  q.count = count;
  return q;
}

}  // namespace brrr
