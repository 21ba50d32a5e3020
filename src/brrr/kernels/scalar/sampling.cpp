#include "brrr/kernels/scalar/sampling.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "brrr/base/error.h"

namespace brrr {
namespace {

struct Candidate {
  double logit;
  int32_t id;
};
// Likelier first; among equals the lower id.
bool before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// The logits with the penalty for what was seen; each token counts once, however often it stands there.
std::vector<double> penalize(std::span<const float> logits, std::span<const int32_t> seen,
                             double penalty) {
  std::vector<double> values(logits.begin(), logits.end());
  if (penalty == 1) return values;
  std::vector<int32_t> ids(seen.begin(), seen.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= values.size()) continue;
    double& value = values[static_cast<size_t>(id)];
    value = penalized(value, penalty);
  }
  return values;
}

std::vector<Candidate> candidates_of(std::span<const double> logits) {
  std::vector<Candidate> all;
  all.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) all.push_back({logits[i], static_cast<int32_t>(i)});
  return all;
}

// The k likeliest, in any order.
void keep_top_k(std::vector<Candidate>& kept, int64_t k) {
  if (k <= 0 || static_cast<size_t>(k) >= kept.size()) return;
  std::nth_element(kept.begin(), kept.begin() + k, kept.end(), before);
  kept.resize(static_cast<size_t>(k));
}

double weight_of(double logit, double largest, double temperature) {
  return std::exp((logit - largest) / temperature);
}

// The shortest row of the likeliest whose share reaches p.
void keep_top_p(std::vector<Candidate>& kept, double p, double largest, double temperature) {
  if (p >= 1) return;
  std::sort(kept.begin(), kept.end(), before);
  double total = 0, reached = 0;
  for (const Candidate& candidate : kept) total += weight_of(candidate.logit, largest, temperature);
  size_t count = 0;
  while (count < kept.size() && (count == 0 || reached < p * total))
    reached += weight_of(kept[count++].logit, largest, temperature);
  kept.resize(count);
}

// Several maxima side by side: one alone waits for itself at every step.
double largest_of(std::span<const double> logits) {
  constexpr size_t kSides = 8;
  double sides[kSides];
  std::fill(sides, sides + kSides, -HUGE_VAL);
  size_t i = 0;
  for (; i + kSides <= logits.size(); i += kSides) {
    for (size_t s = 0; s < kSides; ++s) sides[s] = std::max(sides[s], logits[i + s]);
  }
  for (; i < logits.size(); ++i) sides[0] = std::max(sides[0], logits[i]);
  return *std::max_element(sides, sides + kSides);
}

// The probability of every id for usable logits that have their penalty, written over them: memory of this size
// is new to the process each time, and costs more than the arithmetic.
std::vector<double> distribution_of(std::vector<double> logits, const SamplingOptions& options) {
  const double largest = largest_of(logits);
  const auto weight = [&](double logit) {
    const double found = weight_of(logit, largest, options.temperature);
    return found >= options.min_p ? found : 0;
  };
  if (options.temperature == 0) {
    const auto best = std::find(logits.begin(), logits.end(), largest);  // the first of equals
    std::fill(logits.begin(), logits.end(), 0.0);
    *best = 1;
    return logits;
  }
  if (options.top_k <= 0 && options.top_p >= 1) {
    for (double& logit : logits) logit = weight(logit);
  } else {
    std::vector<Candidate> kept = candidates_of(logits);
    keep_top_k(kept, options.top_k);
    keep_top_p(kept, options.top_p, largest, options.temperature);
    std::fill(logits.begin(), logits.end(), 0.0);
    for (const Candidate& candidate : kept)
      logits[static_cast<size_t>(candidate.id)] = weight(candidate.logit);
  }
  double total = 0;
  for (double of_one : logits) total += of_one;  // in the order of ids: one sum, one result
  for (double& probability : logits) {
    if (probability != 0) probability /= total;
  }
  return logits;
}

}  // namespace

void check_sampling(const SamplingOptions& options) {
  check(options.temperature >= 0 && std::isfinite(options.temperature), "sampling: temperature ",
        options.temperature, " must be 0 or more");
  check(options.top_k >= 0, "sampling: top_k ", options.top_k, " must be 0 (off) or more");
  check(options.top_p > 0 && options.top_p <= 1, "sampling: top_p ", options.top_p,
        " must be above 0 and at most 1");
  check(options.min_p >= 0 && options.min_p <= 1, "sampling: min_p ", options.min_p,
        " must be from 0 to 1");
  check(options.repetition_penalty > 0 && std::isfinite(options.repetition_penalty),
        "sampling: repetition_penalty ", options.repetition_penalty, " must be above 0; 1 is off");
}

int64_t logits_status(std::span<const double> logits) {
  int64_t below_infinity = 0, finite = 0;  // counted without a way out, as vectors do
  for (double logit : logits) {
    below_infinity += logit < HUGE_VAL ? 1 : 0;
    finite += std::fabs(logit) < HUGE_VAL ? 1 : 0;
  }
  if (below_infinity == static_cast<int64_t>(logits.size()))
    return finite > 0 ? kUsableLogits : kNoFiniteLogit;
  const auto bad =
      std::find_if(logits.begin(), logits.end(), [](double x) { return !(x < HUGE_VAL); });
  return 2 * (bad - logits.begin()) + (std::isnan(*bad) ? 1 : 0);
}

void check_logits(int64_t status) {
  if (status == kUsableLogits) return;
  check(status != kNoFiniteLogit, "sampling: all logits are ", -HUGE_VAL);
  fail("sampling: the logit of token ", status / 2, " is ", status % 2 == 1 ? "nan" : "inf",
       "; the model computes no usable numbers");
}

namespace {

std::vector<double> usable_logits(std::span<const float> logits, std::span<const int32_t> seen,
                                  const SamplingOptions& options) {
  check_sampling(options);
  check(!logits.empty(), "sampling: there are no logits");
  std::vector<double> values = penalize(logits, seen, options.repetition_penalty);
  check_logits(logits_status(values));
  return values;
}

}  // namespace

std::vector<double> token_distribution(std::span<const float> logits, std::span<const int32_t> seen,
                                       const SamplingOptions& options) {
  return distribution_of(usable_logits(logits, seen, options), options);
}

int32_t draw_token(std::vector<double> logits, const SamplingOptions& options,
                   const DrawPlace& place) {
  const std::vector<double> probabilities = distribution_of(std::move(logits), options);
  double left = static_cast<double>(draw_bits(options.seed, place)) * 0x1p-53;
  int32_t last = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i] == 0) continue;
    last = static_cast<int32_t>(i);
    if (left < probabilities[i]) return last;
    left -= probabilities[i];
  }
  return last;  // rounding left a little over
}

int32_t sample_token(std::span<const float> logits, std::span<const int32_t> seen,
                     const SamplingOptions& options, const DrawPlace& place) {
  return draw_token(usable_logits(logits, seen, options), options, place);
}

}  // namespace brrr
