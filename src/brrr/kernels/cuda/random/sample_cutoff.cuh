// Where the kept tokens end. In the order of draws (likelier first, then lower ids) every option keeps a
// beginning, so a cut is its last token: the first at which the sum of some measure (1 each for top-k, weights
// for top-p) reaches a goal. It is found a byte at a time, by a histogram of the measure over the next byte of
// all that agree with it so far.
#pragma once

#include "brrr/kernels/cuda/random/sample_row.cuh"

namespace brrr::kernels::token_draw {

struct Cut {
  uint64_t key = 0;  // of the last kept token
  uint32_t last_id = kNone;

  __device__ bool keeps(uint32_t id, double value) const {
    const uint64_t own = key_of(value);
    return own > key || (own == key && id <= last_id);
  }
};

// The first id, in order, at which the sum of `measure` passes target(total): id + 1 in the thread that has it,
// 0 in all others.
template <typename Values, typename Measure, typename Target>
__device__ uint64_t find(const Values& values, const Measure& measure, const Target& target,
                         Team& team) {
  uint64_t own = 0;
  values.for_each_of_own([&](uint32_t id, double value) { own += measure(id, value); });
  const Team::Before sums = team.scan(own);
  const uint64_t goal = target(sums.total);
  if (goal < sums.before || goal >= sums.before + own) return 0;
  uint64_t reached = sums.before, found = 0;
  values.for_each_of_own([&](uint32_t id, double value) {
    if (found != 0) return;
    reached += measure(id, value);
    if (reached > goal) found = uint64_t{id} + 1;
  });
  return found;
}

// The bin, from the top, at which above + the sum of bins reaches the goal: 0 where only that is left, so
// nobody need count it. Adds what lies in the bins above to `above`.
__device__ inline uint32_t search_digit(Histogram& published, uint64_t goal, uint64_t& above,
                                        Team& team) {
  Shared& shared = team.shared();
  const int thread = static_cast<int>(threadIdx.x);
  Team::meet();
  if (thread < kBins) {
    uint64_t sum = 0;
    for (int block = 0; block < Team::size(); ++block)
      sum += Team::of_block(published, block).at(thread);
    shared.combined[thread] = sum;
  }
  if (thread == 0) shared.digit = 0;
  __syncthreads();
  if (thread < 32) {  // lane l has 8 bins, the highest ones first
    constexpr int kOwn = kBins / 32;
    const int top = kBins - 1 - thread * kOwn;
    uint64_t own = 0;
    for (int i = 0; i < kOwn; ++i) own += top - i > 0 ? shared.combined[top - i] : 0;
    uint64_t before = own;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const uint64_t left = __shfl_up_sync(~0u, before, distance);
      if (thread >= distance) before += left;
    }
    const uint64_t all = __shfl_sync(~0u, before, 31);
    before += above - own;
    if (above + all < goal) {
      if (thread == 0) shared.above = above + all;  // bin 0
    } else if (before < goal && before + own >= goal) {
      int bin = top;
      while (before + shared.combined[bin] < goal) before += shared.combined[bin--];
      shared.digit = static_cast<uint32_t>(bin);
      shared.above = before;
    }
  }
  __syncthreads();
  above = shared.above;
  return shared.digit;
}

// A histogram over the byte at `shift` of the keys whose higher bytes are `prefix`, and the byte of the cut.
template <typename Values, typename Key, typename Measure>
__device__ uint64_t next_byte(const Values& values, const Key& key, const Measure& measure,
                              int shift, bool is_first, uint64_t prefix, uint64_t goal,
                              uint64_t& above, Team& team) {
  Histogram& mine = team.shared().histograms[team.next_turn()];
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads)
    mine.low[i] = mine.high[i] = 0;
  __syncthreads();
  values.for_each([&](uint32_t id, double value) {
    uint64_t own;
    if (!key(value, own) || (!is_first && own >> (shift + 8) != prefix)) return;
    const auto byte = static_cast<uint32_t>(own >> shift & 255);
    if (byte == 0) return;
    const uint64_t size = measure(id, value);
    if (size != 0) mine.add(byte, size);
  });
  return prefix << 8 | search_digit(mine, goal, above, team);
}

// Where the sum of the measure reaches `goal` > 0. First by the place on the scale, whose bytes settle it but for
// values that nearly agree; where several do, by their own eight bytes.
template <typename Values, typename Measure>
__device__ Cut cut_at(const Values& values, const Weights& weigh, const Measure& measure,
                      uint64_t goal, Team& team) {
  uint64_t above = 0, place = 0;
  const auto place_of = [&](double value, uint64_t& own) {
    own = weigh.place_of(value);
    return true;
  };
  constexpr int kTop = 8 * (Weights::kPlaceBytes - 1);
  for (int shift = kTop; shift >= 0; shift -= 8)
    place = next_byte(values, place_of, measure, shift, shift == kTop, place, goal, above, team);

  // Keys and ids of all that have this place, the most and the least.
  Extremes group = Extremes::none();
  values.for_each([&](uint32_t id, double value) {
    if (weigh.place_of(value) == place)
      group = group + Extremes{key_of(value), key_of(value), ~id, ~id};
  });
  group = team.join(group, Extremes::none());
  uint64_t key = group.best_key;
  if (group.best_key != group.least_key) {
    key = 0;
    const auto key_in_group = [&](double value, uint64_t& own) {
      own = key_of(value);
      return weigh.place_of(value) == place;
    };
    for (int shift = 56; shift >= 0; shift -= 8)
      key = next_byte(values, key_in_group, measure, shift, shift == 56, key, goal, above, team);
  } else if (group.best_id_turned == group.bad) {
    return {key, kNone};  // one alone: no ties to go by ids
  }
  const uint64_t found = find(
      values,
      [&](uint32_t id, double value) {
        return key_of(value) == key ? measure(id, value) : uint64_t{0};
      },
      [&](uint64_t) { return goal - above - 1; }, team);
  return {key, static_cast<uint32_t>(team.sum(found) - 1)};
}

template <typename Values>
__device__ Cut cut_of(const Values& values, const Weights& weigh, const Options& options,
                      Team& team) {
  Cut cut;
  const int64_t top_k = options.top_k;
  if (top_k > 0) {
    const uint64_t count = values.vocab();
    const auto one = [](uint32_t, double) { return uint64_t{1}; };
    if (static_cast<uint64_t>(top_k) < count)
      cut = cut_at(values, weigh, one, static_cast<uint64_t>(top_k), team);
  }
  if (options.top_p < 1) {
    const Cut by_count = cut;
    const auto weight = [&](uint32_t id, double value) {
      return by_count.keeps(id, value) ? weigh.of(value) : uint64_t{0};
    };
    uint64_t own = 0;
    values.for_each([&](uint32_t id, double value) { own += weight(id, value); });
    const uint64_t total = team.sum(own);
    const double share = ceil(options.top_p * static_cast<double>(total));
    const uint64_t goal = max(uint64_t{1}, min(total, static_cast<uint64_t>(share)));
    cut = cut_at(values, weigh, weight, goal, team);
  }
  return cut;
}

}  // namespace brrr::kernels::token_draw
