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

// Where the windows of a range begin, and where the last one ends. Its last token is a target only.
std::vector<int64_t> cut_documents(const TokenRange& range, int64_t context) {
  check(range.file->document_count().has_value(), range.file->name(),
        ": does not say where documents start, so rows cannot hold whole ones");
  std::vector<int64_t> cuts = {range.first};
  const int64_t last = range.first + range.count - 1;
  while (cuts.back() < last) {
    const int64_t full = std::min(cuts.back() + context, last);
    const int64_t document = range.file->document_of(full);  // one that would not end in this row
    cuts.push_back(full < last && document > cuts.back() ? document : full);
  }
  return cuts;
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
  check(options.cut == WindowCut::even || options.order != WindowOrder::random_starts,
        "batches: rows that start anywhere do not hold whole documents");
  for (BatchSource& source : sources) {
    Windows windows{.tokens = std::move(source.tokens), .range_starts = {0}};
    for (const TokenRange& range : windows.tokens.ranges)
      windows.range_starts.push_back(windows.range_starts.back() + add_windows(windows, range));
    check(windows.range_starts.back() > 0, windows.tokens.name, ": ", windows.tokens.token_count(),
          " tokens do not fill one window of ", options.context,
          " tokens and a target; give more text or a shorter context");
    sources_.push_back(std::move(windows));
  }
}

// How many windows (or starts) a range has.
int64_t Batches::add_windows(Windows& windows, const TokenRange& range) const {
  // A window has a target for each token, so it reads one token more than it is long.
  if (options_.order == WindowOrder::random_starts)
    return std::max<int64_t>(0, range.count - options_.context);
  if (options_.cut == WindowCut::even)
    return std::max<int64_t>(0, range.count - 1) / options_.context;
  windows.cuts.push_back(cut_documents(range, options_.context));
  return static_cast<int64_t>(windows.cuts.back().size()) - 1;
}

int64_t Batches::windows(int source) const {
  return sources_.at(static_cast<size_t>(source)).range_starts.back();
}

RowPlace Batches::place(int64_t step, int64_t row) const {
  check(step >= 0 && step < INT64_MAX / options_.batch, "batches: step ", step);
  check(row >= 0 && row < options_.batch, "batches: row ", row, " of a batch of ", options_.batch);
  const MixedRow mixed = mixture_.row(step * options_.batch + row);
  const Windows& source = sources_[static_cast<size_t>(mixed.source)];
  const Turn turn = turn_of(mixed.number, source.range_starts.back(), mixed.source, options_);
  const auto after = std::ranges::upper_bound(source.range_starts, turn.index);
  const auto range = static_cast<size_t>(after - source.range_starts.begin()) - 1;
  const int64_t window = turn.index - source.range_starts[range];
  RowPlace place{.source = mixed.source,
                 .epoch = turn.epoch,
                 .range = &source.tokens.ranges[range],
                 .first = source.tokens.ranges[range].first,
                 .count = options_.context};
  if (options_.cut == WindowCut::whole_documents) {
    const auto cut = source.cuts[range].begin() + window;
    place.first = cut[0];
    place.count = cut[1] - cut[0];
  } else {
    place.first += window * (options_.order == WindowOrder::random_starts ? 1 : options_.context);
  }
  return place;
}

Batch Batches::rows(int64_t step, int64_t first, int64_t count) const {
  check(first >= 0 && count > 0 && first <= options_.batch - count, "batches: rows ", first, " to ",
        first + count, " of a batch of ", options_.batch);
  std::vector<RowPlace> places;
  for (int64_t row = first; row < first + count; ++row) {
    places.push_back(place(step, row));
    // All rows are asked for before the first is read, so a disk works on them side by side.
    places.back().range->file->will_need(places.back().first, places.back().count + 1);
  }
  CategoryScope scope(Category::data);
  const Shape shape = {count, options_.context};
  Batch batch{.step = step,
              .inputs = empty(shape, DType::i64),
              .targets = empty(shape, DType::i64),
              .documents = options_.documents ? empty(shape, DType::i64) : Tensor()};
  const auto context = static_cast<size_t>(options_.context);
  const auto row_of = [&](const Tensor& x, size_t row) -> std::span<int64_t> {
    if (!x.defined()) return {};
    return {x.data<int64_t>() + row * context, context};
  };
  std::vector<int64_t> scratch;
  for (size_t row = 0; row < places.size(); ++row) {
    read_row(places[row], scratch,
             {row_of(batch.inputs, row), row_of(batch.targets, row), row_of(batch.documents, row)});
  }
  return batch;
}

void Batches::read_row(const RowPlace& place, std::vector<int64_t>& scratch,
                       const RowView& row) const {
  const TokenFile& file = *place.range->file;
  const auto count = static_cast<size_t>(place.count);
  scratch.resize(count + 1);
  file.read(place.first, scratch);
  const std::span<const int64_t> tokens(scratch);
  check_tokens(place, tokens);
  std::ranges::copy(tokens.first(count), row.inputs.begin());
  std::ranges::copy(tokens.last(count), row.targets.begin());
  std::ranges::fill(row.inputs.subspan(count), 0);
  std::ranges::fill(row.targets.subspan(count), kIgnoredTarget);
  if (row.documents.empty()) return;
  file.number_documents(place.first, tokens.first(count), row.documents.first(count));
  std::ranges::fill(row.documents.subspan(count), row.documents[count - 1] + 1);
}

void Batches::check_tokens(const RowPlace& place, std::span<const int64_t> tokens) const {
  const int64_t limit = options_.vocab_size > 0 ? options_.vocab_size : INT64_MAX;
  const auto [least, most] = std::ranges::minmax(tokens);
  if (least >= 0 && most < limit) return;
  const auto bad =
      std::ranges::find_if(tokens, [&](int64_t token) { return token < 0 || token >= limit; });
  fail(place.range->file->name(), ": token ", *bad, " at position ",
       place.first + (bad - tokens.begin()), " is outside the vocabulary of ", options_.vocab_size,
       "; the file belongs to another tokenizer, or has another dtype");
}

}  // namespace brrr
