#include "brrr/nn/layer.h"

namespace brrr {

Sequential& Sequential::append(std::unique_ptr<Layer> layer) {
  check(layer != nullptr, "sequential: there is no layer to append");
  add_module(std::to_string(layers_.size()), *layer);
  layers_.push_back(std::move(layer));
  return *this;
}

Layer& Sequential::operator[](int64_t i) const {
  check(i >= 0 && i < size(), "sequential: layer ", i, " of ", size());
  return *layers_[static_cast<size_t>(i)];
}

Tensor Sequential::forward(const Tensor& x, const ForwardInputs& inputs) const {
  Tensor value = x;
  for (const std::unique_ptr<Layer>& layer : layers_) value = (*layer)(value, inputs);
  return value;
}

}  // namespace brrr
