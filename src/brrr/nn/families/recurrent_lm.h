// A language model without attention: a table of tokens, recurrent layers, a head. The state starts at
// zero with every sequence and every document in it.
#pragma once

#include "brrr/nn/model_family.h"
#include "brrr/nn/recurrent.h"

namespace brrr {

struct RecurrentLmConfig {
  Cell cell = Cell::lstm;
  int64_t vocab = 256;
  int64_t context = 256;
  int64_t layers = 2;
  int64_t width = 256;  // of the table and of the hidden states
  bool tied = false;    // the head is the table of tokens
  double dropout = 0;   // of embeddings, between layers and before the head

  // (1 or 2) V h + L g (2 h^2 + 2 h) with g gates: 1 (rnn), 3 (gru), 4 (lstm)
  int64_t parameter_count() const;
  ModelShape shape() const;
  static const ModelFamily& family();
  bool operator==(const RecurrentLmConfig&) const = default;
};

class RecurrentLm : public LanguageModel {
 public:
  RecurrentLm(const RecurrentLmConfig& config, Random& random);

  const RecurrentLmConfig& config() const { return config_; }
  std::string_view family() const override { return "recurrent"; }
  int64_t vocab() const override { return config_.vocab; }
  int64_t context() const override { return config_.context; }
  int64_t width() const override { return config_.width; }
  const Tensor& head_weight() const override { return lm_head_ ? lm_head_->weight : embed_.weight; }
  bool supports_cache() const override { return true; }
  DecodeCache make_cache(int64_t batch,
                         int64_t capacity) const override;  // the state of each layer

  // The hidden vectors of some tokens after a state, and the state after them: [batch, seq] -> what a
  // decoder goes on from, one token at a time.
  RecurrentResult advance(const Tensor& tokens, const RecurrentState& state,
                          const ForwardInputs& inputs = {}) const;

 protected:
  Tensor body(const Tensor& tokens, const ForwardInputs& inputs) const override;

 private:
  RecurrentLmConfig config_;
  Embedding embed_;
  Dropout drop_in_, drop_out_;
  Recurrent layers_;
  std::unique_ptr<Linear> lm_head_;  // none where tied
};

}  // namespace brrr
