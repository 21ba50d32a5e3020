#include "brrr/nn/language_model.h"

#include "brrr/ops/binary.h"
#include "brrr/ops/reduce.h"
#include "brrr/ops/unary.h"

namespace brrr {

Tensor LanguageModel::hidden(const Tensor& tokens, const ForwardInputs& inputs) const {
  check(tokens.rank() == 2, family(), ": tokens of shape ", tokens.shape(),
        " must be [batch, seq]");
  check(tokens.dim(1) <= context(), family(), ": ", tokens.dim(1),
        " tokens are longer than the context of ", context(),
        "; cut them, or use a larger context");
  return body(tokens, inputs);
}

Tensor LanguageModel::logits(const Tensor& tokens, const ForwardInputs& inputs) const {
  const Tensor last = hidden(tokens, inputs);
  const Scope scope("head");
  return head(last);
}

LanguageLoss LanguageModel::losses(const Tensor& tokens, const Tensor& targets,
                                   const ForwardInputs& inputs,
                                   const CrossEntropyOptions& options) const {
  std::vector<Tensor> extra;
  ForwardInputs with_extra = inputs;
  with_extra.extra_losses = &extra;
  const Tensor mean_loss = cross_entropy(logits(tokens, with_extra), targets, options);
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
