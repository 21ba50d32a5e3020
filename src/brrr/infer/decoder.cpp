#include "brrr/infer/decoder.h"

#include <algorithm>

#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/index/index_select.h"
#include "brrr/ops/view/views.h"

namespace brrr::infer {
namespace {

// Rows of `all`, f32, that ended in this block take their logits from it.
void take_rows(Tensor& all, const Tensor& block, const std::vector<bool>& ended) {
  if (all.device() != Device::cpu()) {
    const std::vector<uint8_t> flags(ended.begin(), ended.end());
    const Tensor rows = from_values(flags, {all.dim(0), 1});
    all = where(to(cast(rows, DType::boolean), all.device()), cast(block, DType::f32), all);
    return;
  }
  const Tensor values = contiguous(to(cast(block, DType::f32), Device::cpu()));
  const int64_t vocab = all.dim(1);
  for (size_t row = 0; row < ended.size(); ++row) {
    const int64_t offset = static_cast<int64_t>(row) * vocab;
    if (ended[row]) std::copy_n(values.data<float>() + offset, vocab, all.data<float>() + offset);
  }
}

size_t longest(const Decoder::Rows& rows) {
  size_t most = 0;
  for (const auto& row : rows) most = std::max(most, row.size());
  return most;
}

}  // namespace

Tensor Decoder::numbers(const std::vector<int64_t>& values) {
  return from_values(values, {static_cast<int64_t>(values.size())});
}

Decoder::Decoder(const LanguageModel& model, const DecoderOptions& options)
    : model_(model),
      options_(options),
      program_(
          [this](std::span<const Tensor> inputs) -> Tensors {
            return {last_logits(inputs[0], inputs[1], inputs[2])};
          },
          {}),
      draw_program_([this](std::span<const Tensor> inputs) { return trace_draw(inputs, false); },
                    {}),
      penalized_program_(
          [this](std::span<const Tensor> inputs) { return trace_draw(inputs, true); }, {}) {
  check(options.batch > 0, "decoder: a batch of ", options.batch, "; use at least 1");
  check(options.block > 0, "decoder: blocks of ", options.block, " tokens; use at least 1");
  options_.block = std::min(options.block, model.context());
  lengths_.assign(static_cast<size_t>(options_.batch), 0);
  history_.resize(lengths_.size());
  // Filling behind the last token of a row may reach a block past the context.
  CategoryScope scope(Category::workspace);
  if (uses_cache()) cache_ = model.make_cache(options_.batch, capacity() + options_.block);
}

void Decoder::restart() {
  std::fill(lengths_.begin(), lengths_.end(), 0);
  for (auto& row : history_) row.clear();
  cache_.clear();
}

void Decoder::require_room(const Rows& tokens) const {
  check(static_cast<int64_t>(tokens.size()) == options_.batch, "decoder: ", tokens.size(),
        " rows of tokens for a batch of ", options_.batch);
  for (size_t row = 0; row < tokens.size(); ++row) {
    const int64_t after = lengths_[row] + static_cast<int64_t>(tokens[row].size());
    check(after <= capacity(), "decoder: ", after, " tokens are longer than the context of ",
          capacity(), "; cut them");
    for (int32_t token : tokens[row])
      check(token >= 0 && token < model_.vocab(), "decoder: token ", token,
            " is outside the vocabulary of ", model_.vocab());
  }
}

// tokens [batch, n], starts [batch], counts [batch] -> logits [batch, vocab] of the last real tokens
Tensor Decoder::last_logits(const Tensor& tokens, const Tensor& starts,
                            const Tensor& counts) const {
  NoGrad inference;
  name_states(model_.named_parameters());
  const int64_t batch = tokens.dim(0), n = tokens.dim(1);
  const DecodeInputs decode{&cache_, starts, counts};
  const Tensor hidden =
      uses_cache() ? model_.hidden(tokens, {.decode = &decode}) : model_.hidden(tokens);
  const Tensor first =
      arange(0, static_cast<double>(batch), 1, {.dtype = DType::i64, .device = tokens.device()}) *
      n;
  const Tensor last =
      index_select(reshape(hidden, {batch * n, hidden.dim(2)}), 0, first + maximum(counts - 1, 0));
  return model_.head(last);
}

// The next up to n tokens of each row, beginning at `fed`.
Decoder::Block Decoder::run_block(const Rows& tokens, const std::vector<int64_t>& fed, int64_t n) {
  Block block{.logits = {}, .counts = {}};
  std::vector<int64_t> padded(static_cast<size_t>(options_.batch * n), 0);
  for (size_t row = 0; row < tokens.size(); ++row) {
    const int64_t count = std::min(n, static_cast<int64_t>(tokens[row].size()) - fed[row]);
    std::copy_n(tokens[row].begin() + fed[row], count,
                padded.begin() + static_cast<int64_t>(row) * n);
    block.counts.push_back(count);
  }
  const Tensor inputs[] = {from_values(padded, {options_.batch, n}), numbers(lengths_),
                           numbers(block.counts)};
  block.logits = program_.run(inputs)[0];
  return block;
}

Tensor Decoder::feed_cached(Device device, const Rows& tokens) {
  Tensor logits = zeros({options_.batch, model_.vocab()}, {.device = device});
  std::vector<int64_t> fed(tokens.size(), 0);
  for (int64_t left = static_cast<int64_t>(longest(tokens)); left > 0;) {
    const Block block = run_block(tokens, fed, left == 1 ? 1 : options_.block);
    std::vector<bool> ended(tokens.size());
    left = 0;
    for (size_t row = 0; row < tokens.size(); ++row) {
      fed[row] += block.counts[row];
      lengths_[row] += block.counts[row];
      const int64_t rest = static_cast<int64_t>(tokens[row].size()) - fed[row];
      ended[row] = rest == 0 && block.counts[row] > 0;
      left = std::max(left, rest);
    }
    take_rows(logits, block.logits, ended);
  }
  return logits;
}

// Rows are filled up to whole blocks, so that there is one program for some lengths and not for each.
Tensor Decoder::feed_whole(Device device, const Rows& tokens) {
  std::vector<bool> has_tokens;
  for (size_t row = 0; row < tokens.size(); ++row) {
    history_[row].insert(history_[row].end(), tokens[row].begin(), tokens[row].end());
    has_tokens.push_back(!tokens[row].empty());
  }
  const auto length = static_cast<int64_t>(longest(history_));
  const int64_t blocks = (length + options_.block - 1) / options_.block;
  const Block whole = run_block(history_, std::vector<int64_t>(tokens.size(), 0),
                                std::min(blocks * options_.block, capacity()));
  lengths_ = whole.counts;
  Tensor logits = zeros({options_.batch, model_.vocab()}, {.device = device});
  take_rows(logits, whole.logits, has_tokens);
  return logits;
}

Tensor Decoder::feed_to(Device device, const Rows& tokens) {
  require_room(tokens);
  if (longest(tokens) == 0) return zeros({options_.batch, model_.vocab()}, {.device = device});
  return uses_cache() ? feed_cached(device, tokens) : feed_whole(device, tokens);
}

Tensor Decoder::feed(const Rows& tokens) { return feed_to(Device::cpu(), tokens); }

int Decoder::programs() const {
  return program_.programs() + draw_program_.programs() + penalized_program_.programs();
}

}  // namespace brrr::infer
