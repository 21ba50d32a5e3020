// What every language model can be asked, so that training, evaluation and generation take any family.
//
//   std::unique_ptr<LanguageModel> model = make_model(model_preset("llama-tiny"), random);
//   Tensor loss = model->loss(tokens, targets, {.dropout_key = key});
#pragma once

#include "brrr/nn/layer.h"
#include "brrr/ops/loss/cross_entropy.h"

namespace brrr {

// What the loss of a batch is made of.
struct LanguageLoss {
  Tensor cross_entropy;  // the mean over positions: what evaluation reports
  Tensor total;          // with the losses that layers add (balance of experts): what is trained
};

class LanguageModel : public Module {
 public:
  virtual std::string_view family() const = 0;  // as the registry calls it
  virtual int64_t vocab() const = 0;
  virtual int64_t context() const = 0;  // how many tokens a sequence may have
  virtual int64_t width() const = 0;    // of the vectors that the head reads

  // [batch, seq] -> [batch, seq, vocab]
  Tensor logits(const Tensor& tokens, const ForwardInputs& inputs = {}) const;
  // The two halves of it: [batch, seq] -> [batch, seq, width], and [..., width] -> [..., vocab]; a
  // decoder needs the logits of the last position only.
  Tensor hidden(const Tensor& tokens, const ForwardInputs& inputs = {}) const;
  Tensor head(const Tensor& hidden) const;
  virtual const Tensor& head_weight() const = 0;  // [vocab, width]; the table of tokens where tied
  // > 0: logits are bounded smoothly, cap * tanh(logits / cap).
  virtual double logit_cap() const { return 0; }

  // Whether the model can go on from what it keeps of earlier tokens (ForwardInputs::decode). One that
  // cannot is decoded by running the whole sequence for every token.
  virtual bool supports_cache() const { return false; }
  // Room for `capacity` tokens in each of `batch` rows; throws Error where caches are not supported.
  virtual DecodeCache make_cache(int64_t batch, int64_t capacity) const;

  // With more `head_rows` than the vocabulary has, the head's product runs on its matrix filled up with
  // zeros to so many rows, and the loss leaves their logits out: the same loss and gradients, with rows of
  // logits that start where a matrix unit wants them (compiler/head/vocab_padding.h).
  LanguageLoss losses(const Tensor& tokens, const Tensor& targets, const ForwardInputs& inputs = {},
                      const CrossEntropyOptions& options = {}, int64_t head_rows = 0) const;
  Tensor loss(const Tensor& tokens, const Tensor& targets, const ForwardInputs& inputs = {},
              const CrossEntropyOptions& options = {}) const;

 protected:
  // The network below the head, for tokens of a checked shape.
  virtual Tensor body(const Tensor& tokens, const ForwardInputs& inputs) const = 0;
};

// Notes the largest |x| of what the part called `name` passes on, where somebody asked for it.
void note_activation(const ForwardInputs& inputs, std::string_view name, const Tensor& x);

}  // namespace brrr
