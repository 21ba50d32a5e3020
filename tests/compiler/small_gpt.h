// A GPT of two layers with its optimizer, which tests of low precision train.
#pragma once

#include <vector>

#include "brrr/nn/families/gpt2.h"
#include "brrr/optim/optimizer.h"

namespace brrr {

struct SmallGpt {
  Random random{3};
  Gpt2 model{{.vocab = 64, .context = 32, .layers = 2, .heads = 2, .width = 32}, random};
  AdamW optimizer{model.named_parameters(), AdamWOptions{.weight_decay = 0.1}};

  void update(std::vector<Tensor> grads) {
    clip_global_norm(grads, 1.0);
    optimizer.update(grads, 3e-3);
  }
};

// Losses of steps over the same inputs, one behind the other.
template <typename Step, typename... Inputs>
std::vector<float> losses_of(Step& step, int steps, const Inputs&... inputs) {
  std::vector<float> found;
  for (int i = 0; i < steps; ++i) found.push_back(step(inputs...).template item<float>());
  return found;
}

}  // namespace brrr
