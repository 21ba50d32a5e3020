// A moving average of the weights, which often does better than the last weights themselves:
//   WeightAverage average(model.named_parameters(), {.decay = 0.999});
//   ... optimizer.update(grads, rate);  average.update();         // inside the step
//   average.swap();  evaluate(model);  average.swap();            // outside
#pragma once

#include "brrr/nn/module.h"

namespace brrr {

struct WeightAverageOptions {
  double decay = 0.999;
  // Early averages would be mostly the first weights: step t uses min(decay, (1 + t) / (10 + t)).
  bool warmup = true;
};

class WeightAverage {
 public:
  explicit WeightAverage(std::vector<NamedTensor> parameters,
                         const WeightAverageOptions& options = {});

  // a = d a + (1 - d) p; not where `applies`, one bool, is given and false.
  void update(const Tensor& applies = {});
  void swap();  // exchanges the averages and the parameters
  // For checkpoints: "average.wte.weight", "average.step".
  const std::vector<NamedTensor>& states() const { return states_; }
  void load_states(const std::vector<NamedTensor>& values, const LoadOptions& options = {});

 private:
  std::vector<NamedTensor> parameters_;
  WeightAverageOptions options_;
  std::vector<NamedTensor> states_;
  std::vector<Tensor> averages_;
  Tensor step_;
};

}  // namespace brrr
