#include "brrr/nn/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "brrr/base/error.h"
#include "brrr/kernels/cpu/rows/rope_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

void require_sense(const RopeScaling& scaling) {
  check(std::isfinite(scaling.factor) && scaling.factor > 0, "rope scaling: a factor of ",
        scaling.factor, "; it must be positive");
  if (scaling.kind != RopeStretch::llama3) return;
  check(scaling.low_turns > 0 && scaling.high_turns > scaling.low_turns, "rope scaling: from ",
        scaling.low_turns, " to ", scaling.high_turns,
        " turns; the first must be positive and the second larger");
  check(scaling.trained_context > 0, "rope scaling: a trained context of ", scaling.trained_context,
        " tokens; it must be positive");
}

}  // namespace

std::vector<double> scaled_frequencies(double base, int64_t pairs, const RopeScaling& scaling) {
  require_sense(scaling);
  std::vector<double> frequencies = kernels::rope_frequencies(base, pairs);
  if (scaling.kind == RopeStretch::none) return frequencies;
  for (double& frequency : frequencies) {
    double kept = 0;  // share of the frequency that is not divided
    if (scaling.kind == RopeStretch::llama3) {
      const double turns =
          static_cast<double>(scaling.trained_context) * frequency / (2 * std::numbers::pi);
      kept = std::clamp((turns - scaling.low_turns) / (scaling.high_turns - scaling.low_turns), 0.0,
                        1.0);
    }
    frequency = (1 - kept) * frequency / scaling.factor + kept * frequency;
  }
  return frequencies;
}

Tensor rope_table_of(const Tensor& positions, const Tensor& frequencies, DType dtype) {
  const Tensor angle = unsqueeze(cast(positions, DType::f64), -1) * frequencies;
  return cast(stack({cos(angle), sin(angle)}, -2), dtype);
}

}  // namespace brrr
