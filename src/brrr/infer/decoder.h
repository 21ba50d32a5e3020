// Feeds tokens to a model, some at a time, and gives the logits of what comes next. Each row of a batch has
// a length of its own. Tokens go in by blocks and then one by one: two programs, each traced once, which
// read the parameters where they are, those of a model in training included.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "brrr/nn/language_model.h"
#include "brrr/runtime/compile.h"

namespace brrr {

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

  int64_t batch() const { return options_.batch; }
  int64_t capacity() const { return model_.context(); }  // tokens a row may have
  int64_t length(int64_t row) const { return lengths_[static_cast<size_t>(row)]; }
  bool uses_cache() const { return model_.supports_cache(); }
  Bytes cache_bytes() const { return cache_.bytes(); }
  int programs() const { return program_.programs(); }  // traced so far

 private:
  void require_room(const Rows& tokens) const;
  Tensors trace(std::span<const Tensor> inputs) const;
  struct Block {
    Tensor logits;
    std::vector<int64_t> counts;  // tokens of each row that were in it
  };
  Block run_block(const Rows& tokens, const std::vector<int64_t>& fed, int64_t n);
  Tensor feed_cached(const Rows& tokens);
  Tensor feed_whole(const Rows& tokens);

  const LanguageModel& model_;
  DecoderOptions options_;
  DecodeCache cache_;
  Rows history_;  // kept where the model has no cache
  std::vector<int64_t> lengths_;
  CompiledFunction program_;
};

}  // namespace brrr
