// Which sizes a plan can be about. Counts are 64-bit whole numbers, so that everything is held against these limits,
// in floating point, before anything is multiplied.
#pragma once

#include "brrr/nn/models.h"
#include "brrr/run/config.h"  // kMostLayers

namespace brrr::plan {

inline constexpr double kMostParameters = 1e16;        // of a model
inline constexpr double kMostTokens = 1e9;             // of a micro-batch
inline constexpr int64_t kMostRecurrentTokens = 2048;  // of a sequence, which is unrolled
inline constexpr int64_t kMostDevices = 10'000'000;

// parameter_count without overflow: the same number where that is below 2^53.
double parameters_of(const ModelConfig& config);

// Throws Error with the rule for sizes that make no model.
void check_model(const ModelConfig& config);

// Throws Error with the rule for a micro-batch that cannot be counted exactly.
void check_micro_batch(const ModelConfig& config, int64_t batch, int64_t seq);

// A model with learned positions has a table of them. Throws Error where a sequence is longer.
void check_positions(const ModelConfig& config, int64_t seq);

}  // namespace brrr::plan
