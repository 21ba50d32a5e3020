#include "brrr/data/batches.h"

#include <algorithm>
#include <span>
#include <utility>

#include "brrr/base/error.h"
#include "brrr/base/philox.h"
#include "brrr/data/permutation.h"

namespace brrr {
namespace {

constexpr uint32_t kOrder = stream_id("data order");

std::vector<double> weights_of(const std::vector<BatchSource>& sources) {
  std::vector<double> weights;
  for (const BatchSource& source : sources) weights.push_back(source.weight);
  return weights;
}

// Where in a source of `choices` windows (or starts) its n-th row begins.
struct Turn {
  int64_t epoch, index;
};
Turn turn_of(int64_t n, int64_t choices, int source, const BatchOptions& options) {
  const uint32_t stream = kOrder + static_cast<uint32_t>(source);
  if (options.order == WindowOrder::random_starts) {
    const PhiloxBlock block =
        philox4x32(philox_counter(static_cast<uint64_t>(n), stream), philox_key(options.seed));
    const uint64_t random = (uint64_t{block.v[0]} << 32) | block.v[1];
    return {0, static_cast<int64_t>(random % static_cast<uint64_t>(choices))};  // off by < 2^-30
  }
  const int64_t epoch = n / choices, index = n % choices;
  if (options.order == WindowOrder::sequential) return {epoch, index};
  const Permutation order(
      choices, {.seed = options.seed, .stream = stream, .number = static_cast<uint64_t>(epoch)});
  return {epoch, order(index)};
}

}  // namespace

Batches::Batches(std::vector<BatchSource> sources, const BatchOptions& options)
    : options_(options), mixture_(weights_of(sources), options.seed) {
  check(options.batch > 0, "batches: ", options.batch, " rows a batch");
  check(options.context > 0, "batches: a context of ", options.context, " tokens");
  for (BatchSource& source : sources) {
    Windows windows{.tokens = std::move(source.tokens), .range_starts = {0}};
    for (const TokenRange& range : windows.tokens.ranges) {
      // A window has a target for each token, so it reads one token more than it is long.
      const int64_t starts = std::max<int64_t>(0, range.count - options.context);
      const int64_t choices = options.order == WindowOrder::random_starts
                                  ? starts
                                  : std::max<int64_t>(0, range.count - 1) / options.context;
      windows.range_starts.push_back(windows.range_starts.back() + choices);
    }
    check(windows.range_starts.back() > 0, windows.tokens.name, ": ", windows.tokens.token_count(),
          " tokens do not fill one window of ", options.context,
          " tokens and a target; give more text or a shorter context");
    sources_.push_back(std::move(windows));
  }
}

int64_t Batches::windows(int source) const {
  return sources_.at(static_cast<size_t>(source)).range_starts.back();
}

double Batches::epochs_at(int64_t step, int source) const {
  const double rows = static_cast<double>(step) * static_cast<double>(options_.batch);
  const double share = static_cast<double>(mixture_.rows_a_round(source)) /
                       static_cast<double>(mixture_.round_rows());
  return rows * share / static_cast<double>(windows(source));
}

RowPlace Batches::place(int64_t step, int64_t row) const {
  check(step >= 0 && step < INT64_MAX / options_.batch, "batches: step ", step);
  check(row >= 0 && row < options_.batch, "batches: row ", row, " of a batch of ", options_.batch);
  const MixedRow mixed = mixture_.row(step * options_.batch + row);
  const Windows& source = sources_[static_cast<size_t>(mixed.source)];
  const Turn turn = turn_of(mixed.number, source.range_starts.back(), mixed.source, options_);
  const auto after = std::ranges::upper_bound(source.range_starts, turn.index);
  const auto range = static_cast<size_t>(after - source.range_starts.begin()) - 1;
  const int64_t stride = options_.order == WindowOrder::random_starts ? 1 : options_.context;
  return {.source = mixed.source,
          .epoch = turn.epoch,
          .range = &source.tokens.ranges[range],
          .first = source.tokens.ranges[range].first +
                   (turn.index - source.range_starts[range]) * stride};
}

Batch Batches::rows(int64_t step, int64_t first, int64_t count) const {
  check(first >= 0 && count > 0 && first <= options_.batch - count, "batches: rows ", first, " to ",
        first + count, " of a batch of ", options_.batch);
  std::vector<RowPlace> places;
  for (int64_t row = first; row < first + count; ++row) {
    places.push_back(place(step, row));
    // All rows are asked for before the first is read, so a disk works on them side by side.
    places.back().range->file->will_need(places.back().first, options_.context + 1);
  }
  CategoryScope scope(Category::data);
  const Shape shape = {count, options_.context};
  Batch batch{.step = step,
              .inputs = empty(shape, DType::i64),
              .targets = empty(shape, DType::i64),
              .documents = options_.documents ? empty(shape, DType::i64) : Tensor()};
  int64_t* inputs = batch.inputs.data<int64_t>();
  int64_t* targets = batch.targets.data<int64_t>();
  int64_t* documents = options_.documents ? batch.documents.data<int64_t>() : nullptr;
  std::vector<int64_t> scratch(static_cast<size_t>(options_.context) + 1);
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t offset = static_cast<int64_t>(i) * options_.context;
    read_row(places[i], scratch, inputs + offset, targets + offset,
             documents ? documents + offset : nullptr);
  }
  return batch;
}

void Batches::read_row(const RowPlace& place, std::vector<int64_t>& scratch, int64_t* inputs,
                       int64_t* targets, int64_t* documents) const {
  const TokenFile& file = *place.range->file;
  file.read(place.first, scratch);
  const auto [least, most] = std::ranges::minmax(scratch);
  if (least < 0 || (options_.vocab_size > 0 && most >= options_.vocab_size)) {
    const auto bad = std::ranges::find_if(scratch, [&](int64_t token) {
      return token < 0 || (options_.vocab_size > 0 && token >= options_.vocab_size);
    });
    fail(file.name(), ": token ", *bad, " at position ", place.first + (bad - scratch.begin()),
         " is outside the vocabulary of ", options_.vocab_size,
         "; the file belongs to another tokenizer, or has another dtype");
  }
  const std::span<const int64_t> tokens(scratch);
  const auto context = static_cast<size_t>(options_.context);
  std::ranges::copy(tokens.first(context), inputs);
  std::ranges::copy(tokens.last(context), targets);
  if (documents) file.number_documents(place.first, tokens.first(context), {documents, context});
}

}  // namespace brrr
