#include "brrr/train/objective.h"

#include "brrr/graph/trace.h"

namespace brrr::training {

// From a trace that is thrown away.
std::vector<std::string> TokenLoss::activation_names() const {
  NoGrad looking_only;
  graph::Tracer tracer;
  std::vector<NamedTensor> largest;
  const Tensor tokens = tracer.add_input({.shape = {1, 1}, .dtype = DType::i64},
                                         model_.parameters().front().device(), "tokens");
  model_.hidden(tokens, {.largest_activations = &largest});
  std::vector<std::string> names;
  for (const NamedTensor& each : largest) names.push_back(each.name);
  return names;
}

LanguageLoss ClassLoss::losses(const Tensor& images, const Tensor& classes,
                               const ForwardInputs& inputs) const {
  const Tensor loss = cross_entropy(classifier_(images, inputs), classes);
  return {.cross_entropy = loss, .total = loss};
}

}  // namespace brrr::training
