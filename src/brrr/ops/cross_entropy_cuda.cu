// Cross-entropy and its gradient. Rows are long (a vocabulary), so a block has one: forward reads it once with a
// running maximum and sum a thread, backward reads and writes it once. Rows of whole chunks go 16 bytes at a
// time; others, and those with capped logits, element by element.
#include "brrr/ops/cross_entropy_call.h"
#include "brrr/ops/rows_plain.cuh"
#include "brrr/ops/softmax_cuda.h"
#include "brrr/ops/softmax_rows.cuh"

namespace brrr {
namespace {

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
};

struct BackwardNumbers {  // one number a row each
  Elements total, dloss, dtotal;
  int64_t total_stride, dloss_stride, dtotal_stride;
  bool has_dtotal;

  template <typename C>
  __device__ RowGradient<C> of(int64_t row, const EntropyRule& rule) const {
    const C s = static_cast<C>(rule.label_smoothing);
    const C log_total = total.load<C>(row * total_stride), d = dloss.load<C>(row * dloss_stride);
    const C more = has_dtotal ? dtotal.load<C>(row * dtotal_stride) : C(0);
    return {.log_total = log_total,
            .factor = d * (1 + 2 * static_cast<C>(rule.z_loss) * log_total) + more,
            .share = d * s / static_cast<C>(rule.classes),
            .hit = d * (1 - s)};
  }
};

// ---- Rows of whole chunks.

template <typename T>
__global__ void __launch_bounds__(kTileThreads)
    cross_entropy_rows_kernel(RowStarts logits, int chunks, Targets targets, Elements loss,
                              Elements total, int64_t rows, EntropyRule rule) {
  using Tile = RowTile<T>;
  const int classes = static_cast<int>(rule.classes);
  const bool smooths = rule.label_smoothing != 0;
  BlockTeam team;
  for (int64_t r = team.index(); r < rows; r += team.count()) {
    const int64_t target = targets.of(r, rule);
    if (target < 0) {  // the same for all threads of the block
      if (threadIdx.x == 0) loss.store<float>(r, 0), total.store<float>(r, 0);
      continue;
    }
    const uint4* const from = logits.of<T>(r);
    OnlineSum<T> own;
    float plain_sum = 0;
    for_each_tile<T>(from, chunks, [&](const Tile& tile, int first) {
      float v[Tile::kSteps][kChunk<T>];
      tile.unpack(v);
#pragma unroll
      for (int s = 0; s < Tile::kSteps; ++s) {
        const int col = (first + s * BlockTeam::size() + BlockTeam::rank()) * kChunk<T>;
        if (smooths) {
#pragma unroll
          for (int i = 0; i < kChunk<T>; ++i) plain_sum += col + i < classes ? v[s][i] : 0;
        }
        if (col + kChunk<T> <= classes) continue;
#pragma unroll
        for (int i = 0; i < kChunk<T>; ++i) v[s][i] = col + i < classes ? v[s][i] : kLowest;
      }
      own.add(v);
    });
    const OnlineSum<T> all = own.of_team(team);
    const float mean_logit =
        smooths ? team.sum(plain_sum) / static_cast<float>(rule.classes) : 0.0f;
    if (threadIdx.x != 0) continue;
    const float log_total = all.largest + logf(all.sum);
    const auto chosen = convert_fast<float>(reinterpret_cast<const T*>(from)[target]);
    loss.store<float>(r, loss_of(rule, log_total, chosen, mean_logit));
    total.store<float>(r, log_total);
  }
}

template <typename T>
__global__ void __launch_bounds__(kTileThreads)
    cross_entropy_backward_rows_kernel(RowStarts logits, RowStarts grad, int chunks,
                                       Targets targets, BackwardNumbers numbers, int64_t rows,
                                       EntropyRule rule) {
  using Tile = RowTile<T>;
  const int classes = static_cast<int>(rule.classes);
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const int target = static_cast<int>(targets.of(r, rule));
    const RowGradient<float> row = numbers.of<float>(r, rule);
    uint4* const to = grad.of<T>(r);
    if (target < 0) {
      for (int chunk = static_cast<int>(threadIdx.x); chunk < chunks; chunk += BlockTeam::size())
        to[chunk] = uint4{0, 0, 0, 0};
      continue;
    }
    for_each_tile<T>(logits.of<T>(r), chunks, [&](const Tile& tile, int first) {
      float v[Tile::kSteps][kChunk<T>];
      tile.unpack(v);
      Tile::for_each_chunk(chunks - first, [&](int s, int chunk) {
        const int col = (first + chunk) * kChunk<T>;
#pragma unroll
        for (float& value : v[s])
          value = fmaf(exp_of<T>(value - row.log_total), row.factor, -row.share);
        if (target >= col && target < col + kChunk<T>) {
#pragma unroll
          for (int i = 0; i < kChunk<T>; ++i) v[s][i] -= col + i == target ? row.hit : 0;
        }
        if (col + kChunk < T >> classes) {
#pragma unroll
          for (int i = 0; i < kChunk<T>; ++i) v[s][i] = col + i < classes ? v[s][i] : 0;
        }
        to[first + chunk] = pack_chunk<T>(v[s]);
      });
    });
  }
}

// ---- Other rows.

template <typename C>
__device__ C capped(C logit, C cap) {
  return cap > 0 ? cap * tanh(logit / cap) : logit;
}

template <typename C>
__global__ void cross_entropy_plain_kernel(RowsOf logits, Targets targets, Elements loss,
                                           Elements total, int64_t rows, EntropyRule rule) {
  constexpr C lowest = -std::numeric_limits<C>::infinity();
  const C cap = static_cast<C>(rule.soft_cap);
  BlockTeam team;
  for (int64_t r = team.index(); r < rows; r += team.count()) {
    const int64_t target = targets.of(r, rule);
    if (target < 0) {  // the same for all threads of the block
      if (threadIdx.x == 0) loss.store<C>(r, 0), total.store<C>(r, 0);
      continue;
    }
    const PlainRow<C> row(logits, r, rule.classes);
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
    const C all = team.sum(largest == lowest ? sum : sum * exp(largest - shift));
    const C mean_logit =
        rule.label_smoothing != 0 ? team.sum(plain_sum) / static_cast<C>(rule.classes) : C(0);
    if (threadIdx.x != 0) continue;
    const C log_total = shift + log(all);
    loss.store<C>(r, loss_of(rule, log_total, capped(row.at(target), cap), mean_logit));
    total.store<C>(r, log_total);
  }
}

template <typename C>
__global__ void cross_entropy_backward_plain_kernel(RowsOf logits, RowsOf grad, Targets targets,
                                                    BackwardNumbers numbers, int64_t rows,
                                                    int64_t cols, EntropyRule rule) {
  const C cap = static_cast<C>(rule.soft_cap);
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const int64_t target = targets.of(r, rule);
    const RowGradient<C> row = numbers.of<C>(r, rule);
    const PlainRow<C> from(logits, r, cols), to(grad, r, cols);
    from.for_each_column([&](int64_t col) {
      if (target < 0 || col >= rule.classes) return to.set(col, C(0));
      const C logit = from.at(col), t = cap > 0 ? tanh(logit / cap) : C(0);
      const C value = exp((cap > 0 ? cap * t : logit) - row.log_total) * row.factor - row.share -
                      (col == target ? row.hit : C(0));
      to.set(col, value * (1 - t * t));
    });
  }
}

// Whether rows may go in chunks.
bool is_for_chunks(const CudaCall& call, int64_t cols) {
  return options_of(call.attrs).soft_cap == 0 && cols < INT32_MAX;
}

// A thread has four chunks at a time.
int tile_threads(int64_t chunks) {
  return std::min(kTileThreads, block_of_chunks(std::max<int64_t>(chunks, 1), 4).threads);
}

}  // namespace

void cross_entropy_cuda(const CudaCall& call) {
  const Operand &logits = call.input(0), &targets = call.input(1);
  const int64_t rows = logits.shape()[0], cols = logits.shape()[1];
  if (rows == 0) return;
  const EntropyRule rule(options_of(call.attrs), cols);
  const Targets of_rows{Elements(targets), targets.layout->strides[0], fault_note(call)};
  const Elements loss(call.output(0)), total(call.output(1));
  const std::optional<RowStarts> from = row_starts(logits);
  const bool ran =
      from && is_for_chunks(call, cols) && visit_chunked_dtype(logits.dtype, [&]<typename T>() {
        const int64_t chunks = cols / kChunk<T>;
        cross_entropy_rows_kernel<T><<<blocks_for(rows, 1), tile_threads(chunks), 0, call.stream>>>(
            *from, static_cast<int>(chunks), of_rows, loss, total, rows, rule);
        return true;
      });
  if (!ran) {
    visit_plain(logits.dtype, [&]<typename C>() {
      cross_entropy_plain_kernel<C>
          <<<blocks_for(rows, 1), plain_row_threads(cols), 0, call.stream>>>(
              RowsOf(logits), of_rows, loss, total, rows, rule);
    });
  }
  cuda::check_launch(call.op.name);
}

void cross_entropy_backward_cuda(const CudaCall& call) {
  const Operand &logits = call.input(0), &targets = call.input(1), &grad = call.output(0);
  const int64_t rows = logits.shape()[0], cols = logits.shape()[1];
  if (rows == 0) return;
  const bool has_dtotal = call.inputs.size() > 4;
  const Operand &total = call.input(2), &dloss = call.input(3),
                &dtotal = call.input(has_dtotal ? 4 : 3);
  const EntropyRule rule(options_of(call.attrs), cols);
  const Targets of_rows{Elements(targets), targets.layout->strides[0], fault_note(call)};
  const BackwardNumbers numbers{.total = Elements(total),
                                .dloss = Elements(dloss),
                                .dtotal = Elements(dtotal),
                                .total_stride = total.layout->strides[0],
                                .dloss_stride = dloss.layout->strides[0],
                                .dtotal_stride = dtotal.layout->strides[0],
                                .has_dtotal = has_dtotal};
  const std::optional<RowStarts> from = row_starts(logits), to = row_starts(grad);
  const bool ran = from && to && is_for_chunks(call, cols) &&
                   visit_chunked_dtype(logits.dtype, [&]<typename T>() {
                     const int64_t chunks = cols / kChunk<T>;
                     cross_entropy_backward_rows_kernel<T>
                         <<<blocks_for(rows, 1), tile_threads(chunks), 0, call.stream>>>(
                             *from, *to, static_cast<int>(chunks), of_rows, numbers, rows, rule);
                     return true;
                   });
  if (!ran) {
    visit_plain(logits.dtype, [&]<typename C>() {
      cross_entropy_backward_plain_kernel<C>
          <<<blocks_for(rows, 1), plain_row_threads(cols), 0, call.stream>>>(
              RowsOf(logits), RowsOf(grad), of_rows, numbers, rows, cols, rule);
    });
  }
  cuda::check_launch(call.op.name);
}

}  // namespace brrr
