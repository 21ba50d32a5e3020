#include "brrr/data/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "brrr/base/error.h"
#include "brrr/base/philox.h"
#include "brrr/data/permutation.h"

namespace brrr {
namespace {

constexpr uint32_t kMixing = stream_id("data mixing");
constexpr int64_t kMaxRound = 4096;

struct Quotas {
  std::vector<int64_t> rows;
  double worst_error = 2;  // of a share; larger than any
};

// Whole rows closest to the shares: round down, then one more to the largest remainders.
Quotas apportion(std::span<const double> shares, int64_t round) {
  Quotas quotas;
  std::vector<size_t> by_remainder(shares.size());
  std::iota(by_remainder.begin(), by_remainder.end(), size_t{0});
  std::vector<double> remainders;
  int64_t left = round;
  for (double share : shares) {
    const double wanted = share * static_cast<double>(round);
    const auto whole = static_cast<int64_t>(wanted + 1e-9);  // 0.7 * 10 may be 6.999...
    quotas.rows.push_back(whole);
    remainders.push_back(wanted - static_cast<double>(whole));
    left -= whole;
  }
  std::ranges::stable_sort(by_remainder, std::greater(), [&](size_t i) { return remainders[i]; });
  for (size_t i = 0; left > 0; ++i, --left) ++quotas.rows[by_remainder[i % shares.size()]];
  quotas.worst_error = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    const double got = static_cast<double>(quotas.rows[i]) / static_cast<double>(round);
    quotas.worst_error = std::max(quotas.worst_error, std::abs(got - shares[i]));
  }
  return quotas;
}

}  // namespace

Mixture::Mixture(std::span<const double> weights, uint64_t seed) : seed_(seed) {
  check(!weights.empty(), "mixture: no source");
  double total = 0;
  for (double weight : weights) {
    check(std::isfinite(weight) && weight > 0, "mixture: a weight of ", weight,
          "; weights are positive numbers");
    total += weight;
  }
  std::vector<double> shares;
  for (double weight : weights) shares.push_back(weight / total);

  constexpr double kExact = 1e-9;
  Quotas best;
  for (int64_t round = 1; round <= kMaxRound && best.worst_error > kExact; ++round) {
    Quotas quotas = apportion(shares, round);
    if (std::ranges::min(quotas.rows) > 0 && quotas.worst_error < best.worst_error)
      best = std::move(quotas);
  }
  check(!best.rows.empty(), "mixture: the smallest share is ", std::ranges::min(shares),
        "; it must be at least 1 row in ", kMaxRound);
  starts_.push_back(0);
  for (int64_t rows : best.rows) starts_.push_back(starts_.back() + rows);
}

int64_t Mixture::rows_a_round(int source) const {
  return starts_[static_cast<size_t>(source) + 1] - starts_[static_cast<size_t>(source)];
}

MixedRow Mixture::row(int64_t n) const {
  const int64_t round = n / round_rows();
  const Permutation order(
      round_rows(), {.seed = seed_, .stream = kMixing, .number = static_cast<uint64_t>(round)});
  const int64_t place = order(n % round_rows());
  const auto after = std::ranges::upper_bound(starts_, place);
  const int source = static_cast<int>(after - starts_.begin()) - 1;
  return {source, round * rows_a_round(source) + place - starts_[static_cast<size_t>(source)]};
}

}  // namespace brrr
