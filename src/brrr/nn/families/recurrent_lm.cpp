#include "brrr/nn/families/recurrent_lm.h"

#include "brrr/ops/matmul/matmul.h"

namespace brrr {
namespace {

RecurrentLmConfig checked(const RecurrentLmConfig& config) {
  check(config.vocab > 0 && config.context > 0 && config.layers > 0 && config.width > 0,
        "recurrent: vocab (", config.vocab, "), context (", config.context, "), layers (",
        config.layers, ") and width (", config.width, ") must be positive");
  return config;
}

}  // namespace

int64_t RecurrentLmConfig::parameter_count() const {
  return (tied ? 1 : 2) * vocab * width + Recurrent::count_for(cell, width, width, layers);
}

// Dropout sites: 0 for the embeddings, 1 for the head, then one a layer.
RecurrentLm::RecurrentLm(const RecurrentLmConfig& config, Random& random)
    : config_(checked(config)),
      embed_(config.vocab, config.width, random),
      drop_in_(config.dropout, 0),
      drop_out_(config.dropout, 1),
      layers_(config.cell, config.width, config.width, random,
              {.layers = config.layers, .dropout = config.dropout, .first_dropout_site = 2}) {
  add_module("embed", embed_);
  add_module(std::string(cell_name(config.cell)), layers_);
  if (!config.tied) {
    lm_head_ =
        std::make_unique<Linear>(config.width, config.vocab, random, LinearOptions{.bias = false});
    add_module("head", *lm_head_);
  }
}

RecurrentResult RecurrentLm::advance(const Tensor& tokens, const RecurrentState& state,
                                     const ForwardInputs& inputs) const {
  RecurrentResult result = layers_(drop_in_(embed_(tokens), inputs), state, inputs);
  note_activation(inputs, cell_name(config_.cell), result.output);
  result.output = drop_out_(result.output, inputs);
  return result;
}

DecodeCache RecurrentLm::make_cache(int64_t batch, int64_t capacity) const {
  const RecurrentState state =
      layers_.make_state(batch, {embed_.weight.dtype(), embed_.weight.device()});
  DecodeCache cache{.capacity = capacity, .layers = {}};
  for (size_t i = 0; i < state.hidden.size(); ++i) {
    cache.layers.push_back({state.hidden[i]});
    if (!state.cell.empty()) cache.layers.back().push_back(state.cell[i]);
  }
  return cache;
}

Tensor RecurrentLm::body(const Tensor& tokens, const ForwardInputs& inputs) const {
  if (!inputs.decode) return advance(tokens, {}, inputs).output;
  const std::vector<LayerCache>& layers = inputs.decode->cache->layers;
  RecurrentState state;
  for (const LayerCache& layer : layers) {
    state.hidden.push_back(layer[0]);
    if (layer.size() > 1) state.cell.push_back(layer[1]);
  }
  const RecurrentResult result = advance(tokens, state, inputs);
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i][0].copy_from(result.state.hidden[i]);
    if (layers[i].size() > 1) layers[i][1].copy_from(result.state.cell[i]);
  }
  return result.output;
}

}  // namespace brrr
