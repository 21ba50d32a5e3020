// Cross-entropy and its gradient in one pass: a block has a row in shared memory, so that logits are read once and
// their gradient is written once. A thread reads and writes the same chunks always; as soon as it has written one, that
// of the block's next row is on its way to the place. Rows that are too long for that are read twice, by so few blocks
// that the L2 cache still has them the second time.
#include "brrr/kernels/cuda/device/staged_rows.cuh"
#include "brrr/kernels/cuda/rows/cross_entropy_rows.cuh"
#include "brrr/kernels/cuda/rows/softmax_cuda.h"

namespace brrr::kernels {
namespace {

// So much that one block has a multiprocessor for itself, where a block may have that.
constexpr int64_t kAloneBytes = 120 * 1024;

struct RowNumbers {  // one number a row each
  Elements loss, dloss;
  int64_t dloss_stride;
};

// Chunks that a thread has at a time: few from shared memory, more where each is a way to memory.
template <bool Staged>
constexpr int kSteps = Staged ? 2 : 4;

template <typename T, bool Staged>
__global__ void __launch_bounds__(kTileThreads, 2)
    classifier_rows_kernel(RowStarts logits, RowStarts grad, int chunks, Targets targets,
                           RowNumbers numbers, int64_t rows, EntropyRule rule) {
  using Tile = RowTile<T, kSteps<Staged>>;
  extern __shared__ uint4 row_chunks[];
  const int classes = static_cast<int>(rule.classes);
  const int tile_chunks = Tile::kSteps * BlockTeam::size(),
            tiles = (chunks + tile_chunks - 1) / tile_chunks;
  BlockTeam team;
  const uint4* next = logits.of<T>(team.index());  // there are no more blocks than rows
  // Calls visit(chunk) for all chunks of this thread, and closes the groups of what it fetches.
  const auto for_each_chunk = [&](const auto& visit) {
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
      for (int s = 0; s < Tile::kSteps; ++s) {
        const int chunk = tile * tile_chunks + s * BlockTeam::size() + BlockTeam::rank();
        if (chunk < chunks) visit(chunk);
      }
      if constexpr (Staged) CopyGroups::close_tile(tile);
    }
    if constexpr (Staged) CopyGroups::close_row(tiles);
  };
  const auto fetch = [&](int chunk) {
    if constexpr (Staged) {
      CopyGroups::keep_order();
      mma::copy_chunk(row_chunks + chunk, next + chunk, true);
    }
  };
  if constexpr (Staged) for_each_chunk(fetch);
  for (int64_t r = team.index(); r < rows; r += team.count()) {
    const auto target = static_cast<int>(targets.of(r, rule));
    const auto dloss = numbers.dloss.load<float>(r * numbers.dloss_stride);  // while copies come
    const bool is_last = r + team.count() >= rows;
    const uint4* const row = Staged ? row_chunks : next;
    if (!is_last) next = logits.of<T>(r + team.count());
    uint4* const to = grad.of<T>(r);
    if (target < 0) {  // the same for all threads of the block
      if constexpr (Staged) mma::wait_copies<0>();
      if (threadIdx.x == 0) numbers.loss.store<float>(r, 0);
      for_each_chunk([&](int chunk) {
        to[chunk] = uint4{0, 0, 0, 0};
        if (!is_last) fetch(chunk);
      });
      continue;
    }
    const auto totals =
        ChunkedTotals<T>::template of<Tile::kSteps>(row, chunks, rule, team, [&](int first) {
          if constexpr (Staged) CopyGroups::await(first / tile_chunks);
        });
    const RowGradient<float> gradient(rule, totals.log_total, dloss, 0.0f);
    const int target_chunk = target / kChunk<T>;
    if (target_chunk % BlockTeam::size() == BlockTeam::rank()) {
      const auto chosen = convert_fast<float>(reinterpret_cast<const T*>(row)[target]);
      numbers.loss.store<float>(r, loss_of(rule, totals.log_total, chosen, totals.mean_logit));
    }
    for (int tile_index = 0; tile_index < tiles; ++tile_index) {
      const int first = tile_index * tile_chunks;
      Tile tile;
      tile.load(row + first, chunks - first);
      Tile::for_each_chunk(chunks - first, [&](int s, int chunk) {
        float v[kChunk<T>];
        unpack_chunk<T>(tile.words[s], v);
        gradient.apply<T>(v, (first + chunk) * kChunk<T>, target, classes);
        to[first + chunk] = pack_chunk<T>(v);
        if (!is_last) fetch(first + chunk);
      });
      if constexpr (Staged) CopyGroups::close_tile(tile_index);
    }
    if constexpr (Staged) CopyGroups::close_row(tiles);
  }
}

template <typename C>
__global__ void classifier_plain_kernel(RowsOf logits, RowsOf grad, Targets targets,
                                        RowNumbers numbers, int64_t rows, int64_t cols,
                                        EntropyRule rule) {
  const C cap = static_cast<C>(rule.soft_cap);
  BlockTeam team;
  for (int64_t r = team.index(); r < rows; r += team.count()) {
    const int64_t target = targets.of(r, rule);
    const PlainRow<C> from(logits, r, cols), to(grad, r, cols);
    if (target < 0) {
      if (threadIdx.x == 0) numbers.loss.store<C>(r, 0);
      from.for_each_column([&](int64_t col) { to.set(col, C(0)); });
      continue;
    }
    const PlainTotals<C> totals(PlainRow<C>(logits, r, rule.classes), rule, team);
    const RowGradient<C> gradient(rule, totals.log_total,
                                  numbers.dloss.load<C>(r * numbers.dloss_stride), C(0));
    if (target % BlockTeam::size() == BlockTeam::rank())  // who overwrites it
      numbers.loss.store<C>(
          r, loss_of(rule, totals.log_total, capped(from.at(target), cap), totals.mean_logit));
    from.for_each_column([&](int64_t col) {
      to.set(col,
             col >= rule.classes ? C(0) : gradient.of_element(from.at(col), cap, col == target));
    });
  }
}

template <typename T>
void run_rows(const CudaCall& call, const RowStarts& from, const RowStarts& to,
              const Targets& targets, const RowNumbers& numbers, const EntropyRule& rule) {
  const int64_t rows = call.input(0).shape()[0], chunks = call.input(0).shape()[1] / kChunk<T>;
  const bool is_staged = chunks * 16 <= most_staged_bytes();
  const auto shared =
      static_cast<size_t>(is_staged ? chunks * 16 : std::min(kAloneBytes, most_staged_bytes()));
  const auto kernel =
      is_staged ? classifier_rows_kernel<T, true> : classifier_rows_kernel<T, false>;
  allow_shared_bytes(kernel, shared, "classifier");
  const int threads = tile_threads(chunks, is_staged ? kSteps<true> : kSteps<false>, kTileThreads);
  kernel<<<resident_blocks(kernel, {threads, 1}, shared, rows), threads, shared, call.stream>>>(
      from, to, static_cast<int>(chunks), targets, numbers, rows, rule);
}

}  // namespace

void classifier_cuda(const CudaCall& call) {
  const Operand &logits = call.input(0), &targets = call.input(1), &dloss = call.input(2),
                &grad = call.output(1);
  const int64_t rows = logits.shape()[0], cols = logits.shape()[1];
  if (rows == 0) return;
  const EntropyRule rule(options_of(call.attrs), cols);
  const Targets of_rows{Elements(targets), targets.layout->strides[0], fault_note(call)};
  const RowNumbers numbers{Elements(call.output(0)), Elements(dloss), dloss.layout->strides[0]};
  const std::optional<RowStarts> from = row_starts(logits), to = row_starts(grad);
  const bool ran = from && to && is_for_chunks(call, cols) &&
                   visit_chunked_dtype(logits.dtype, [&]<typename T>() {
                     run_rows<T>(call, *from, *to, of_rows, numbers, rule);
                     return true;
                   });
  if (!ran) {
    visit_plain(logits.dtype, [&]<typename C>() {
      classifier_plain_kernel<C><<<blocks_for(rows, 1), plain_row_threads(cols), 0, call.stream>>>(
          RowsOf(logits), RowsOf(grad), of_rows, numbers, rows, cols, rule);
    });
  }
  cuda::check_launch(call.op.name);
}

}  // namespace brrr::kernels
