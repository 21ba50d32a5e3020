// What a program costs before it runs: FLOPs, bytes and seconds of every kernel, and what bounds it.
//
//   compute   = sum over its work of amount / rate of the family
//   memory    = sum over its operands of bytes / bandwidth at their distance (cost/traffic.h)
//   overhead  = launch, and fork and join where threads share it
//   seconds   = overhead + max(compute, memory); products that pack their operands first: the sum
//   regime    = the largest of the three
// A repeat costs its body once per iteration, as many as it may run.
// On a CPU nothing runs while a call is set up, so overhead adds; arithmetic and memory overlap.
#pragma once

#include <optional>

#include "brrr/compiler/lower/plan_memory.h"
#include "brrr/compiler/precision/precision.h"
#include "brrr/hardware/rates.h"

namespace brrr::cost {

enum class Regime : uint8_t { compute, bandwidth, overhead };
inline constexpr int kRegimes = 3;
std::string_view regime_name(Regime regime);

struct KernelPrediction {
  double compute = 0, memory = 0, overhead = 0;  // seconds
  std::string family;                            // of the largest part of its arithmetic
  bool is_measured = true;                       // false where no family of the rates fits it
  bool overlaps = true;                          // arithmetic hides memory, or memory arithmetic
  bool is_loop =
      false;  // of a repeat: `compute` and `memory` are the seconds of kernels bound by each

  double seconds() const {
    return overhead + (overlaps ? std::max(compute, memory) : compute + memory);
  }
  Regime regime() const;
};

struct Prediction {
  std::vector<KernelPrediction> kernels;
  bool calibrated = false;

  double seconds() const;
  double seconds_in(Regime regime) const;
};

// Another machine: factors of speed, and a factor of the overhead. Another precision is another program,
// which has to be planned before it can be priced.
struct WhatIf {
  double flops = 1, bandwidth = 1, overhead = 1;
  std::optional<compiler::Precision> precision;
  bool operator==(const WhatIf&) const = default;
};
// "flops=2x,bandwidth=2x,overhead=0,dtype=bf16"; throws Error on anything else.
WhatIf parse_what_if(std::string_view text);

// `list` and `plan` are those of what_if.precision, where it asks for one.
Prediction predict(const compiler::KernelList& list, const compiler::MemoryPlan& plan,
                   const hardware::Rates& rates, const WhatIf& what_if = {});

}  // namespace brrr::cost
