// What a run will need before it starts: memory, seconds and disk, computed from the very program that it
// will run, traced and planned on the null device.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "brrr/base/units.h"
#include "brrr/compiler/target.h"
#include "brrr/cost/kernel_lines.h"
#include "brrr/cost/predict.h"
#include "brrr/hardware/rates.h"
#include "brrr/nn/models.h"
#include "brrr/run/config.h"
#include "brrr/run/run_log.h"

namespace brrr::training {

struct TrainPlan {
  compiler::Target target = {};  // what it is planned for
  int64_t parameters = 0;
  // Memory: parameters and states; what a step holds at its fullest; what a checkpoint copies while it is
  // written; batches made ahead, evaluation and samples.
  Bytes states, arena, snapshot, other;
  Bytes memory() const { return states + arena + snapshot + other; }

  Flops
      model_flops_per_token;  // of products and attention, forward and backward, causal pairs only
  double step_seconds = 0;    // predicted
  hardware::RatesKind rates_kind =
      hardware::RatesKind::assumed;  // of the rates that it was predicted by
  std::string rates_source;          // theirs
  BytesPerSecond memory_bandwidth;   // theirs
  double compute_share = 0, bandwidth_share = 0, overhead_share = 0;  // of step_seconds
  std::vector<runs::KernelFact> kernels;                              // the longest first
  std::vector<cost::KernelLine> launches;                             // all, in launch order

  std::vector<runs::MemoryMoment> memory_timeline;  // of the arena

  Bytes checkpoint, disk;                  // one, and all that the run keeps at a time
  std::string speed_regime, speed_advice;  // sentences
};

inline constexpr std::string_view kMfuConvention =
    "products and attention of the model counted exactly (causal pairs, no recomputation), over "
    "the "
    "measured f32 peak of all threads";

// `data_bytes` is what RUN/data takes.
TrainPlan plan_training(const runs::TrainConfig& config, const ModelConfig& model,
                        const compiler::Target& target, const hardware::Rates& rates,
                        Bytes data_bytes);

}  // namespace brrr::training
