// Which source the n-th row of a run comes from, when several are mixed by weight.
//
// Rows are dealt out in rounds. In a round of 10 rows with weights 0.7 and 0.3 exactly 7 and 3 rows come
// from the two sources, in an order shuffled anew each round; so shares are exact, and the number of
// rows that a source has given before row n follows from n alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace brrr {

struct MixedRow {
  int source = 0;
  int64_t number = 0;  // of this row among those of its source: 0, 1, 2, ... without gaps
};

class Mixture {
 public:
  // Weights are relative. Shares are those of the best round of at most 4096 rows, the shortest when
  // several are exact.
  Mixture(std::span<const double> weights, uint64_t seed);

  MixedRow row(int64_t n) const;
  int64_t round_rows() const { return starts_.back(); }
  int64_t rows_a_round(int source) const;

 private:
  uint64_t seed_;
  std::vector<int64_t> starts_;  // places of a round: source s has [starts_[s], starts_[s + 1])
};

}  // namespace brrr
