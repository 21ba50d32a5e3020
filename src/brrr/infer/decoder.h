// Feeds tokens to a model, some at a time, and gives the logits of what comes next. Each row of a batch has
// a length of its own. Tokens go in by blocks and then one by one: two programs, each traced once, which
// read the parameters where they are, those of a model in training included.
//
// Or it draws what comes next itself, where the logits are, and feeds that: between tokens only ids come to
// the host.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "brrr/kernels/scalar/sampling.h"
#include "brrr/nn/language_model.h"
#include "brrr/runtime/compile.h"

namespace brrr::infer {

struct DecoderOptions {
  int64_t batch = 1;
  int64_t block = 64;  // tokens of a row that go in at once
};

class Decoder {
 public:
  explicit Decoder(const LanguageModel& model, const DecoderOptions& options = {});
  Decoder(const Decoder&) = delete;  // its program knows where it lives
  Decoder& operator=(const Decoder&) = delete;

  using Rows = std::vector<std::vector<int32_t>>;  // tokens of each row; rows may differ in length
  // Appends tokens and returns, [batch, vocab], the logits behind the last token of each row. A row that
  // gets no tokens keeps its place; its logits are then zeros.
  Tensor feed(const Rows& tokens);
  void restart();  // forgets everything

  // Draws that follow are by these options; `seen` are the tokens of each row so far, for the penalty.
  void begin_draws(const SamplingOptions& sampling, const Rows& seen);
  // Appends tokens and draws what comes next: ids and status of each row (ops/random/sample_tokens.h), those of a row
  // that gets no tokens being of no use. On a GPU they may be on their way still.
  runtime::PendingResults draw(const Rows& tokens, std::span<const DrawPlace> places);
  // The same with the tokens that were drawn last, which the host need not know yet, for rows that go on.
  // Only with a cache.
  runtime::PendingResults draw_next(const std::vector<bool>& goes_on,
                                    std::span<const DrawPlace> places);

  int64_t batch() const { return options_.batch; }
  int64_t capacity() const { return model_.context(); }  // tokens a row may have
  int64_t length(int64_t row) const { return lengths_[static_cast<size_t>(row)]; }
  bool uses_cache() const { return model_.supports_cache(); }
  Device device() const { return model_.head_weight().device(); }
  Bytes cache_bytes() const { return cache_.bytes(); }
  int programs() const;  // traced so far

 private:
  static Tensor numbers(const std::vector<int64_t>& values);
  void require_room(const Rows& tokens) const;
  Tensor last_logits(const Tensor& tokens, const Tensor& starts, const Tensor& counts) const;
  Tensors trace_draw(std::span<const Tensor> inputs, bool is_penalized) const;
  struct Block {
    Tensor logits;
    std::vector<int64_t> counts;  // tokens of each row that were in it
  };
  Block run_block(const Rows& tokens, const std::vector<int64_t>& fed, int64_t n);
  Tensor feed_to(Device device, const Rows& tokens);
  Tensor feed_cached(Device device, const Rows& tokens);
  Tensor feed_whole(Device device, const Rows& tokens);
  void note_drawn(const Tensor& ids, bool is_penalized) const;

  const LanguageModel& model_;
  DecoderOptions options_;
  DecodeCache cache_;
  Rows history_;  // kept where the model has no cache
  std::vector<int64_t> lengths_;
  runtime::CompiledFunction program_;

  // What draws go on from, on the device of the model.
  struct DrawState {
    SamplingOptions sampling;
    Tensor drawn;  // i64 [batch]: the last ones
    Tensor seen;   // bool [batch, vocab], where there ever was a penalty
    bool is_penalized() const { return sampling.repetition_penalty != 1; }
  };
  DrawState draws_;
  runtime::CompiledFunction draw_program_, penalized_program_;
};

}  // namespace brrr::infer
