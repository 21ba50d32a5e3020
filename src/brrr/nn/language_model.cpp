#include "brrr/nn/language_model.h"

#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/pad_roll.h"

namespace brrr {

Tensor LanguageModel::hidden(const Tensor& tokens, const ForwardInputs& inputs) const {
  check(tokens.rank() == 2, family(), ": tokens of shape ", tokens.shape(),
        " must be [batch, seq]");
  check(tokens.dim(1) <= context(), family(), ": ", tokens.dim(1),
        " tokens are longer than the context of ", context(),
        "; cut them, or use a larger context");
  if (inputs.decode) {
    check(supports_cache(), family(), ": the model keeps no cache to decode from");
    check(!inputs.documents.defined(), family(),
          ": documents are known in whole sequences only; decode each of them by itself");
  }
  return body(tokens, inputs);
}

DecodeCache LanguageModel::make_cache(int64_t, int64_t) const {
  fail(family(), ": the model keeps no cache to decode from; ask supports_cache() first");
}

Tensor LanguageModel::logits(const Tensor& tokens, const ForwardInputs& inputs) const {
  const Tensor last = hidden(tokens, inputs);
  const graph::Scope scope("head");
  return head(last);
}

Tensor LanguageModel::head(const Tensor& hidden) const {
  const Tensor logits = linear(hidden, head_weight());
  return logit_cap() > 0 ? tanh(logits * (1 / logit_cap())) * logit_cap() : logits;
}

LanguageLoss LanguageModel::losses(const Tensor& tokens, const Tensor& targets,
                                   const ForwardInputs& inputs, const CrossEntropyOptions& options,
                                   int64_t head_rows) const {
  std::vector<Tensor> extra;
  ForwardInputs with_extra = inputs;
  with_extra.extra_losses = &extra;
  const Tensor last = hidden(tokens, with_extra);
  const int64_t filling = head_rows > 0 ? head_rows - vocab() : 0;
  check(filling >= 0, family(), ": a head of ", head_rows, " rows has no row for each of ", vocab(),
        " tokens");
  CrossEntropyOptions of_tokens = options;
  if (filling > 0) of_tokens.classes = vocab();
  if (logit_cap() > 0) {
    check(options.soft_cap == 0, family(), ": the model bounds its logits itself, by ", logit_cap(),
          "; leave soft_cap out");
    of_tokens.soft_cap = logit_cap();  // the loss bounds them, so that the head is a plain matmul
  }
  const Tensor all = [&] {
    const graph::Scope scope("head");
    return linear(last, filling > 0 ? pad(head_weight(), {0, 0}, {filling, 0}) : head_weight());
  }();
  const Tensor mean_loss = cross_entropy(all, targets, of_tokens);
  Tensor total = mean_loss;
  for (const Tensor& part : extra) total = total + part;
  return {mean_loss, total};
}

Tensor LanguageModel::loss(const Tensor& tokens, const Tensor& targets, const ForwardInputs& inputs,
                           const CrossEntropyOptions& options) const {
  return losses(tokens, targets, inputs, options).total;
}

void note_activation(const ForwardInputs& inputs, std::string_view name, const Tensor& x) {
  if (!inputs.largest_activations) return;
  NoGrad looking_only;
  inputs.largest_activations->push_back({std::string(name), max(abs(x.detach()))});
}

}  // namespace brrr
