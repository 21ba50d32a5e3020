#include "brrr/optim/weight_average.h"

#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"

namespace brrr {

WeightAverage::WeightAverage(std::vector<NamedTensor> parameters,
                             const WeightAverageOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  check(!parameters_.empty(), "average: there are no parameters");
  check(options.decay >= 0 && options.decay < 1, "average: a decay of ", options.decay,
        " must be at least 0 and below 1");
  NoGrad values_only;
  for (const auto& [name, p] : parameters_) {
    averages_.push_back(clone(p.detach()));
    states_.push_back({join_text("average.", name), averages_.back()});
  }
  step_ = zeros({}, {.dtype = DType::f64, .device = parameters_.front().tensor.device()});
  states_.push_back({"average.step", step_});
  for (const NamedTensor& state : states_) state.tensor.set_category(Category::optimizer);
}

void WeightAverage::update(const Tensor& applies) {
  NoGrad update_only;
  const auto set = [&](const Tensor& target, const Tensor& value) {
    target.copy_from(applies.defined() ? where(applies, value, target) : value);
  };
  name_states(states_);
  Tensor decay;
  if (options_.warmup) {
    set(step_, step_ + 1.0);
    decay = minimum((step_ + 1.0) / (step_ + 10.0), options_.decay);
  }
  for (size_t i = 0; i < averages_.size(); ++i) {
    const Tensor &a = averages_[i], &p = parameters_[i].tensor;
    const Tensor gap = p - a;
    set(a, decay.defined() ? a + gap * (1.0 - decay) : a + gap * (1 - options_.decay));
  }
}

void WeightAverage::swap() {
  NoGrad values_only;
  for (size_t i = 0; i < averages_.size(); ++i) {
    const Tensor kept = clone(averages_[i]);
    averages_[i].copy_from(parameters_[i].tensor);
    parameters_[i].tensor.copy_from(kept);
  }
}

void WeightAverage::load_states(const std::vector<NamedTensor>& values,
                                const LoadOptions& options) {
  load_tensors(states_, values, options);
}

}  // namespace brrr
