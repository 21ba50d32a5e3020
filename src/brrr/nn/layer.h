// A module that is a function of one tensor, and what besides the tensor a forward pass may be given.
// What changes from call to call is an input here and never a member, so that one compiled program
// serves all steps.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "brrr/nn/decode_cache.h"
#include "brrr/nn/module.h"

namespace brrr {

struct ForwardInputs {
  // i64[3], dropout_key(seed, step): what a training step drops. Undefined: nothing is dropped.
  Tensor dropout_key = {};
  // i64 [batch, seq]: which document a token belongs to; tokens see their own only. Undefined: one.
  Tensor documents = {};
  // Where routers of experts add their balance losses, and layers the largest |activation| that they
  // pass on ("h.3"); null: not wanted.
  std::vector<Tensor>* extra_losses = nullptr;
  std::vector<NamedTensor>* largest_activations = nullptr;
  // Decoding: the tokens follow those that the cache holds. Null: they begin the sequence.
  const DecodeInputs* decode = nullptr;
  size_t layer = 0;  // which part of the cache is this layer's

  ForwardInputs of_layer(size_t index) const {
    ForwardInputs own = *this;
    own.layer = index;
    return own;
  }
  const LayerCache& layer_cache() const { return decode->cache->layers[layer]; }
};

class Layer : public Module {
 public:
  Tensor operator()(const Tensor& x, const ForwardInputs& inputs = {}) const {
    const graph::Scope scope = enter();
    return forward(x, inputs);
  }

 protected:
  virtual Tensor forward(const Tensor& x, const ForwardInputs& inputs) const = 0;
};

// A function without parameters as a layer: Function(relu).
class Function : public Layer {
 public:
  explicit Function(std::function<Tensor(const Tensor&)> function)
      : function_(std::move(function)) {}

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs&) const override { return function_(x); }

 private:
  std::function<Tensor(const Tensor&)> function_;
};

// Layers one after another, named "0", "1", ...
//   Sequential net;
//   net.add<Linear>(784, 128, random).add<Function>(relu).add<Linear>(128, 10, random);
class Sequential : public Layer {
 public:
  template <typename Part, typename... Args>
  Sequential& add(Args&&... args) {
    return append(std::make_unique<Part>(std::forward<Args>(args)...));
  }
  Sequential& append(std::unique_ptr<Layer> layer);

  int64_t size() const { return static_cast<int64_t>(layers_.size()); }
  Layer& operator[](int64_t i) const;

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace brrr
