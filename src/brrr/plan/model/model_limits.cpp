#include "brrr/plan/model/model_limits.h"

#include <algorithm>

#include "brrr/base/error.h"

namespace brrr::plan {
namespace {

// Of one layer and the head: counts of the backward part are up to 1.25 times that of the whole square of attention,
// and all stay below 2^63 = 9.2e18.
constexpr double kMostFlops = 7e18;
constexpr double kMostElements = 1e16;  // of what a layer makes of a micro-batch

// One layer: parameters in all and those that a token multiplies at most, and elements of a token.
struct LayerSizes {
  double parameters = 0, products = 0, elements = 0;
};

LayerSizes dense_layer_of(const ModelShape& s) {
  const auto h = static_cast<double>(s.width), f = static_cast<double>(s.hidden);
  const double products = s.mixer_matrices + (s.gated ? 3 : 2) * h * f;
  const double ffn_elements = s.hidden > 0 ? h + (s.gated ? 2 : 1) * f : 0;
  return {.parameters = products + s.layer_vectors,
          .products = products,
          .elements = s.mixer_elements + ffn_elements};
}
LayerSizes mixed_layer_of(const ModelShape& s) {
  const auto h = static_cast<double>(s.width), f = static_cast<double>(s.expert_hidden),
             shared = static_cast<double>(s.shared_expert_hidden),
             experts = static_cast<double>(s.experts), top_k = static_cast<double>(s.top_k);
  return {
      .parameters = s.mixer_matrices + experts * (3 * h * f + h) + 3 * h * shared + s.layer_vectors,
      .products = s.mixer_matrices + top_k * 3 * h * f + experts * h + 3 * h * shared,
      .elements = s.mixer_elements + h + experts + 2 * top_k * f + 2 * shared};
}

double parameters_of(const ModelShape& s) {
  const auto h = static_cast<double>(s.width), vocab = static_cast<double>(s.vocab);
  const int64_t dense = s.experts > 0 ? s.dense_layers : s.layers;
  return (s.tied ? 1 : 2) * vocab * h + static_cast<double>(s.learned_positions) * h +
         s.outside_vectors + static_cast<double>(dense) * dense_layer_of(s).parameters +
         static_cast<double>(s.layers - dense) * mixed_layer_of(s).parameters;
}

double flops_of(const ModelShape& s, double tokens, double seq) {
  const auto of = [&](const LayerSizes& layer) {
    return 2 * tokens * layer.products + 2 * tokens * seq * 2 * s.pair_width;
  };
  const double head = 2 * tokens * static_cast<double>(s.vocab) * static_cast<double>(s.width);
  if (s.heads == 0) return 2 * tokens * parameters_of(s) + head;
  const double dense = of(dense_layer_of(s));
  if (s.experts == 0) return dense + head;
  // Every expert has room for at least one token.
  const LayerSizes mixed = mixed_layer_of(s);
  return std::max(dense, of(mixed) + 2 * mixed.parameters) + head;
}

double elements_of(const ModelShape& s) {
  return std::max(dense_layer_of(s).elements, s.experts > 0 ? mixed_layer_of(s).elements : 0);
}

void check_heads(const ModelConfig& c) {
  const int64_t heads = c.size("heads"), head_dim = c.size("head_dim"),
                kv_heads = c.size("kv_heads"), width = c.size("width"), hidden = c.size("hidden");
  check_range("a number of heads", heads, 1, kLargestSize);
  check_range("a head", head_dim, 0, kLargestSize);
  const ModelShape shape = shape_of(c);
  check(head_dim > 0 || shape.latent || width % heads == 0, heads,
        " heads do not divide a width of ", width, "; give --head-dim");
  const bool follows_from_width = hidden == 0 && shape.hidden > 0;
  check_range("an ffn", hidden, follows_from_width ? 0 : 1, kLargestSize);
  check(kv_heads == 0 || (kv_heads > 0 && heads % kv_heads == 0), kv_heads,
        " key heads do not divide ", heads, " heads");
  check_range("a window", c.size("window"), 0, kLargestSize);
}

}  // namespace

double parameters_of(const ModelConfig& config) { return parameters_of(shape_of(config)); }

void check_model(const ModelConfig& config) {
  check_range("a vocabulary", vocab_of(config), 1, kLargestSize);
  check_range("a width", config.size("width"), 1, kLargestSize);
  check_range("a context", context_of(config), 1, kLargestSize);
  const int64_t layers = config.size("layers");
  check(layers >= 1 && layers <= kMostLayers, layers, " layers make no sense; use 1 to ",
        kMostLayers);
  if (config.has("heads")) check_heads(config);
  if (config.family().check_sizes) config.family().check_sizes(config);
  const double parameters = parameters_of(config);
  check(parameters <= kMostParameters, "a model of ", parameters, " parameters is beyond reason; ",
        kMostParameters, " at most");
}

void check_micro_batch(const ModelConfig& config, int64_t batch, int64_t seq) {
  check(batch >= 1 && seq >= 1, "a micro-batch of ", batch, " sequences of ", seq,
        " tokens is empty; use 1 or more of both");
  const double tokens = static_cast<double>(batch) * static_cast<double>(seq);
  check(seq <= kLargestSize && tokens <= kMostTokens, "a micro-batch of ", batch, " sequences of ",
        seq, " tokens has ", tokens, " tokens; use ", kMostTokens,
        " at most, in sequences of up to ", kLargestSize);
  const ModelShape shape = shape_of(config);
  check(shape.heads > 0 || seq <= kMostRecurrentTokens,
        "a recurrent model is counted token by token: sequences of ", seq,
        " tokens are too long; use ", kMostRecurrentTokens, " at most");
  const double elements = tokens * (elements_of(shape) + static_cast<double>(shape.vocab));
  const double flops = flops_of(shape, tokens, static_cast<double>(seq));
  check(elements <= kMostElements && flops <= kMostFlops, "a micro-batch of ", batch,
        " sequences of ", seq, " tokens makes ", elements, " elements and ", flops,
        " FLOPs in one layer of this model and its head, which are counted exactly up to ",
        kMostElements, " and ", kMostFlops, "; use fewer tokens or a smaller model");
}

void check_positions(const ModelConfig& config, int64_t seq) {
  const int64_t positions = shape_of(config).learned_positions;
  check(positions == 0 || seq <= positions, "a sequence of ", seq, " tokens is longer than the ",
        positions, " positions that the model has a table of; use fewer tokens");
}

}  // namespace brrr::plan
