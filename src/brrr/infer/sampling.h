// The next token from the logits of a model. Every draw is a pure function of (seed, sample, position), so
// a text can be made again, and the texts of a batch do not depend on each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

// Which draw: the text that is being written, and the place of the token in it.
struct DrawPlace {
  uint32_t sample = 0;
  uint64_t position = 0;
};
int32_t sample_token(std::span<const float> logits, std::span<const int32_t> seen,
                     const SamplingOptions& options, const DrawPlace& place);

}  // namespace brrr
