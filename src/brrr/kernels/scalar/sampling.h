// The next token from the logits of a model. Every draw is a pure function of (seed, sample, position), so
// a text can be made again, and the texts of a batch do not depend on each other. ops/random/sample_tokens.h draws for
// many rows where their logits are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "brrr/base/host_device.h"
#include "brrr/base/philox.h"

namespace brrr {

// Applied in this order: repetition penalty, temperature, top-k, top-p, min-p.
struct SamplingOptions {
  double temperature = 1;         // logits are divided by it; 0: always the likeliest token
  int64_t top_k = 0;              // > 0: only so many of the likeliest
  double top_p = 1;               // the likeliest tokens that together have at least this share
  double min_p = 0;               // only tokens at least this share as likely as the likeliest
  double repetition_penalty = 1;  // > 1: logits of tokens seen before are divided by it, negative
                                  // ones multiplied (Keskar et al., "CTRL", arXiv 1909.05858)
  uint64_t seed = 0;
};
void check_sampling(
    const SamplingOptions& options);  // throws Error naming the option and its range

// The probability of every id, 0 where the options leave it out. Among equal logits lower ids go first.
// `seen` are the tokens so far. At temperature 0 all of it is on one id.
std::vector<double> token_distribution(std::span<const float> logits, std::span<const int32_t> seen,
                                       const SamplingOptions& options);

// The logit of a token that was seen before.
BRRR_HD inline double penalized(double logit, double penalty) {
  return logit > 0 ? logit / penalty : logit * penalty;
}

// What can be said of the logits of a row, as one number: that a token can be drawn, that all of them are
// -inf, or 2 id + 1 (NaN) and 2 id (inf) of the first one that no model should give.
inline constexpr int64_t kUsableLogits = -1, kNoFiniteLogit = -2;
int64_t logits_status(std::span<const double> logits);
void check_logits(int64_t status);  // throws Error unless a token can be drawn

// Which draw: the text that is being written, and the place of the token in it.
struct DrawPlace {
  uint32_t sample = 0;
  uint64_t position = 0;
};
// Its 53 random bits: u = bits / 2^53 is uniform in [0, 1).
BRRR_HD inline uint64_t draw_bits(uint64_t seed, const DrawPlace& place) {
  constexpr uint32_t kSampling = stream_id("sampling");
  const PhiloxBlock block =
      philox4x32(philox_counter(place.position, kSampling, place.sample), philox_key(seed));
  return (static_cast<uint64_t>(block.v[0]) << 32 | block.v[1]) >> 11;
}

int32_t sample_token(std::span<const float> logits, std::span<const int32_t> seen,
                     const SamplingOptions& options, const DrawPlace& place);
// The same from logits that have their penalty already and were found usable.
int32_t draw_token(std::vector<double> logits, const SamplingOptions& options,
                   const DrawPlace& place);

}  // namespace brrr
