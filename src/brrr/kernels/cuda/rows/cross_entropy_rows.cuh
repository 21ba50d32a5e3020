// Cross-entropy of rows and its gradient: what cross_entropy_cuda.cu and fused_cross_entropy_cuda.cu share.
#pragma once

#include "brrr/kernels/calls/cross_entropy_options.h"
#include "brrr/kernels/cuda/device/rows_plain.cuh"
#include "brrr/kernels/cuda/rows/softmax_rows.cuh"

namespace brrr::kernels {

struct EntropyRule {
  double label_smoothing, soft_cap, z_loss;
  int64_t classes;  // columns behind them are filling: no part in the loss, and no gradient
  int64_t ignored;
  bool ignores;
  EntropyRule(const CrossEntropyOptions& options, int64_t columns)
      : label_smoothing(options.label_smoothing),
        soft_cap(options.soft_cap),
        z_loss(options.z_loss),
        classes(class_count(options, columns)),
        ignored(options.ignore_index.value_or(0)),
        ignores(options.ignore_index.has_value()) {}
};

struct Targets {
  Elements data;
  int64_t stride;
  cuda::FaultNote note;
  // The class of a row; -1 where it does not count.
  __device__ int64_t of(int64_t row, const EntropyRule& rule) const {
    const auto target = data.load<int64_t>(row * stride);
    if (rule.ignores && target == rule.ignored) return -1;
    return note.accepts(target, rule.classes) ? target : -1;
  }
};

// The loss of a row from the logarithm of its sum, the target's logit and the mean of all.
template <typename C>
__device__ C loss_of(const EntropyRule& rule, C log_total, C chosen, C mean_logit) {
  const C s = static_cast<C>(rule.label_smoothing);
  return log_total - (1 - s) * chosen - s * mean_logit +
         static_cast<C>(rule.z_loss) * log_total * log_total;
}

// What the gradient of a row's logits is made of: e^(logit - log_total) factor - share, less `hit` at the target.
template <typename C>
struct RowGradient {
  C log_total, factor, share, hit;

  // From the gradients of the row's loss, and of its logarithm.
  __device__ RowGradient(const EntropyRule& rule, C log_of_sum, C dloss, C dtotal)
      : log_total(log_of_sum),
        factor(dloss * (1 + 2 * static_cast<C>(rule.z_loss) * log_of_sum) + dtotal),
        share(dloss * static_cast<C>(rule.label_smoothing) / static_cast<C>(rule.classes)),
        hit(dloss * (1 - static_cast<C>(rule.label_smoothing))) {}

  __device__ C of_element(C logit, C cap, bool is_target) const {
    const C t = cap > 0 ? tanh(logit / cap) : C(0);
    const C value =
        exp((cap > 0 ? cap * t : logit) - log_total) * factor - share - (is_target ? hit : C(0));
    return value * (1 - t * t);
  }
  // The chunk of logits from column `col` on becomes its gradient.
  template <typename T>
  __device__ void apply(float (&v)[kChunk<T>], int col, int target, int classes) const {
#pragma unroll
    for (float& value : v) value = fmaf(exp_less<T>(value, log_total), factor, -share);
    if (target >= col && target < col + kChunk<T>) {
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i) v[i] -= col + i == target ? hit : 0;
    }
    if (col + kChunk < T >> classes) {
#pragma unroll
      for (int i = 0; i < kChunk<T>; ++i) v[i] = col + i < classes ? v[i] : 0;
    }
  }
};

// ---- Rows of whole chunks.

// The logarithm of the sum of a row, and, where labels are smoothed, the mean; the same in all threads of the block.
template <typename T>
struct ChunkedTotals {
  float log_total, mean_logit;

  // A thread has `Steps` chunks at a time.
  template <int Steps>
  static __device__ ChunkedTotals of(const uint4* row, int chunks, const EntropyRule& rule,
                                     BlockTeam& team) {
    return of<Steps>(row, chunks, rule, team, [](int) {});
  }
  // await(first) before the chunks from number `first` on are read
  template <int Steps, typename Await>
  static __device__ ChunkedTotals of(const uint4* row, int chunks, const EntropyRule& rule,
                                     BlockTeam& team, const Await& await) {
    const int classes = static_cast<int>(rule.classes);
    const bool smooths = rule.label_smoothing != 0;
    OnlineSum<T> own;
    float plain_sum = 0;
    for (int first = 0; first < chunks; first += Steps * BlockTeam::size()) {
      await(first);
      RowTile<T, Steps> tile;
      tile.load(row + first, chunks - first, lowest_chunk<T>());
#pragma unroll
      for (int s = 0; s < Steps; ++s) {
        const int col = (first + s * BlockTeam::size() + BlockTeam::rank()) * kChunk<T>;
        if (smooths) {
          float v[kChunk<T>];
          unpack_chunk<T>(tile.words[s], v);
#pragma unroll
          for (int i = 0; i < kChunk<T>; ++i) plain_sum += col + i < classes ? v[i] : 0;
        }
        if (col + kChunk < T >> classes) cut_chunk<T>(tile.words[s], classes - col);
      }
      own.add(tile.words);
    }
    const OnlineSum<T> all = own.of_team(team);
    return {all.largest + logf(all.sum),
            smooths ? team.sum(plain_sum) / static_cast<float>(rule.classes) : 0.0f};
  }
};

// Threads for rows of which a thread has `steps` chunks at a time.
inline int tile_threads(int64_t chunks, int64_t steps, int most) {
  return std::min(most, block_of_chunks(std::max<int64_t>(chunks, 1), steps).threads);
}

// ---- Rows that are read element by element.

template <typename C>
__device__ C capped(C logit, C cap) {
  return cap > 0 ? cap * tanh(logit / cap) : logit;
}

// The logarithm of the sum, and, where labels are smoothed, the mean; the same in all threads of the block.
template <typename C>
struct PlainTotals {
  C log_total, mean_logit;

  __device__ PlainTotals(const PlainRow<C>& row, const EntropyRule& rule, BlockTeam& team) {
    constexpr C lowest = -std::numeric_limits<C>::infinity();
    const C cap = static_cast<C>(rule.soft_cap);
    C largest = lowest, sum = 0, plain_sum = 0;
    row.for_each_column([&](int64_t col) {
      const C value = capped(row.at(col), cap);
      plain_sum += value;
      if (value == lowest) return;
      if (!(value <= largest)) {  // also where it is NaN, which then stays
        sum = largest == lowest ? sum : sum * exp(largest - value);
        largest = value;
      }
      sum += exp(value - largest);
    });
    const C shift = team.max(largest);
    log_total = shift + log(team.sum(largest == lowest ? sum : sum * exp(largest - shift)));
    mean_logit =
        rule.label_smoothing != 0 ? team.sum(plain_sum) / static_cast<C>(rule.classes) : C(0);
  }
};

// Whether rows may go in chunks.
inline bool is_for_chunks(const CudaCall& call, int64_t cols) {
  return options_of(call.attrs).soft_cap == 0 && cols < INT32_MAX;
}

}  // namespace brrr::kernels
