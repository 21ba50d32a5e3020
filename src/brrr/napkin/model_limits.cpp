#include "brrr/napkin/model_limits.h"

#include <algorithm>

#include "brrr/base/error.h"

namespace brrr {
namespace {

// Of one layer and the head: counts of the backward part are up to 1.25 times that of the whole square of attention,
// and all stay below 2^63 = 9.2e18.
constexpr double kMostFlops = 7e18;
constexpr double kMostElements = 1e16;  // of what a layer makes of a micro-batch

void check_range(std::string_view what, int64_t size, int64_t least, int64_t most) {
  check(size >= least && size <= most, what, " of ", size, " makes no sense; use ", least, " to ",
        most);
}

// One layer of a family: parameters in all and those that a token multiplies at most, elements of a token, and the
// elements of a query's and a value's heads together.
struct LayerSizes {
  double parameters = 0, products = 0, elements = 0, pair = 0;
};

LayerSizes layer_of(const Gpt2Config& c) {
  const auto h = static_cast<double>(c.width), heads = static_cast<double>(c.heads);
  const double ad = c.head_dim > 0 ? heads * static_cast<double>(c.head_dim) : h;
  const double f = c.hidden > 0 ? static_cast<double>(c.hidden) : 4 * h;
  const double products = 4 * h * ad + 2 * h * f;
  return {.parameters = products + (c.bias ? 3 * ad + f + 6 * h : 2 * h),
          .products = products,
          .elements = h + 3 * ad + f,
          .pair = 2 * ad};
}

LayerSizes attention_of(const LlamaConfig& c) {
  const auto h = static_cast<double>(c.width), heads = static_cast<double>(c.heads);
  if (c.kv_rank > 0) {
    const auto q = static_cast<double>(c.q_rank), kv = static_cast<double>(c.kv_rank),
               nope = static_cast<double>(c.nope_dim), rope = static_cast<double>(c.rope_dim),
               value = static_cast<double>(c.value_dim);
    const double q_width = heads * (nope + rope);
    const double queries = c.q_rank == 0 ? h * q_width : q * (h + 1 + q_width);
    const double all =
        queries + h * (kv + rope) + kv + kv * heads * (nope + value) + heads * value * h;
    return {.parameters = all,
            .products = all,
            .elements = 2 * q_width + heads * value + q + kv,
            .pair = q_width + heads * value};
  }
  const auto d = static_cast<double>(c.head_dim > 0 ? c.head_dim : c.width / c.heads),
             kv_heads = static_cast<double>(c.kv_heads > 0 ? c.kv_heads : c.heads);
  const double q = heads * d, kv = kv_heads * d, products = 2 * h * (q + kv);
  return {.parameters = products + (c.qkv_bias ? q + 2 * kv : 0) + (c.qk_norm ? 2 * d : 0),
          .products = products,
          .elements = q + 2 * kv,
          .pair = 2 * q};
}

// Layers without and with experts.
LayerSizes dense_layer_of(const LlamaConfig& c) {
  const auto h = static_cast<double>(c.width), f = static_cast<double>(c.hidden);
  LayerSizes layer = attention_of(c);
  layer.parameters += 3 * h * f + 2 * h, layer.products += 3 * h * f;
  layer.elements += h + 2 * f;
  return layer;
}
LayerSizes mixed_layer_of(const LlamaConfig& c) {
  const auto h = static_cast<double>(c.width),
             f = static_cast<double>(c.expert_hidden > 0 ? c.expert_hidden : c.hidden),
             shared = static_cast<double>(c.shared_expert_hidden),
             experts = static_cast<double>(c.experts), top_k = static_cast<double>(c.top_k);
  LayerSizes layer = attention_of(c);
  layer.parameters += experts * (3 * h * f + h) + 3 * h * shared + 2 * h;
  layer.products += top_k * 3 * h * f + experts * h + 3 * h * shared;
  layer.elements += h + experts + 2 * top_k * f + 2 * shared;
  return layer;
}

double gates_of(const RecurrentLmConfig& c) {
  return c.cell == Cell::rnn ? 1 : c.cell == Cell::gru ? 3 : 4;
}

void check_attention(const LlamaConfig& c) {
  check(c.kv_heads == 0 || (c.kv_heads > 0 && c.heads % c.kv_heads == 0), c.kv_heads,
        " key heads do not divide ", c.heads, " heads");
  check_range("a window", c.window, 0, kLargestSize);
  if (c.kv_rank == 0) {
    check(c.q_rank == 0 && c.nope_dim == 0 && c.rope_dim == 0 && c.value_dim == 0,
          "q_rank, nope_dim, rope_dim and value_dim are of latent attention; give kv_rank as well");
    return;
  }
  check_range("a kv_rank", c.kv_rank, 1, kLargestSize);
  check_range("a q_rank", c.q_rank, 0, kLargestSize);
  check_range("a nope_dim", c.nope_dim, 1, kLargestSize);
  check_range("a rope_dim", c.rope_dim, 2, kLargestSize);
  check_range("a value_dim", c.value_dim, 1, kLargestSize);
}

void check_experts(const LlamaConfig& c) {
  check_range("a number of experts", c.experts, 0, kLargestSize);
  check_range("hidden units of an expert", c.expert_hidden, 0, kLargestSize);
  check_range("hidden units of shared experts", c.shared_expert_hidden, 0, kLargestSize);
  if (c.experts == 0) {
    check(c.expert_hidden == 0 && c.shared_expert_hidden == 0 && c.dense_layers == 0,
          "expert_hidden, shared_expert_hidden and dense_layers are of a mixture; give experts as "
          "well");
    return;
  }
  check(c.top_k >= 1 && c.top_k <= c.experts, "a token cannot choose ", c.top_k, " of ", c.experts,
        " experts");
  check(c.dense_layers >= 0 && c.dense_layers <= c.layers, c.dense_layers,
        " first layers without experts are not 0 to all ", c.layers, " layers");
}

double flops_of(const ModelConfig& config, double tokens, double seq) {
  const auto of = [&](const LayerSizes& layer) {
    return 2 * tokens * layer.products + 2 * tokens * seq * layer.pair;
  };
  const auto head = [&](const auto& c) {
    return 2 * tokens * static_cast<double>(c.vocab) * static_cast<double>(c.width);
  };
  if (const auto* gpt2 = std::get_if<Gpt2Config>(&config)) return of(layer_of(*gpt2)) + head(*gpt2);
  if (const auto* llama = std::get_if<LlamaConfig>(&config)) {
    const double dense = of(dense_layer_of(*llama));
    if (llama->experts == 0) return dense + head(*llama);
    // Every expert has room for at least one token.
    const LayerSizes mixed = mixed_layer_of(*llama);
    return std::max(dense, of(mixed) + 2 * mixed.parameters) + head(*llama);
  }
  const auto& recurrent = std::get<RecurrentLmConfig>(config);
  return 2 * tokens * parameters_of(config) + head(recurrent);
}

double elements_of(const ModelConfig& config) {
  if (const auto* gpt2 = std::get_if<Gpt2Config>(&config)) return layer_of(*gpt2).elements;
  if (const auto* llama = std::get_if<LlamaConfig>(&config))
    return std::max(dense_layer_of(*llama).elements,
                    llama->experts > 0 ? mixed_layer_of(*llama).elements : 0);
  const auto& recurrent = std::get<RecurrentLmConfig>(config);
  return gates_of(recurrent) * static_cast<double>(recurrent.width);
}

}  // namespace

double parameters_of(const ModelConfig& config) {
  const auto tables = [](const auto& c, double times) {
    return times * static_cast<double>(c.vocab) * static_cast<double>(c.width);
  };
  if (const auto* gpt2 = std::get_if<Gpt2Config>(&config)) {
    const auto h = static_cast<double>(gpt2->width);
    return tables(*gpt2, 1) + static_cast<double>(gpt2->context) * h +
           static_cast<double>(gpt2->layers) * layer_of(*gpt2).parameters +
           (gpt2->bias ? 2 * h : h);
  }
  if (const auto* llama = std::get_if<LlamaConfig>(&config)) {
    const int64_t dense = llama->experts > 0 ? llama->dense_layers : llama->layers;
    return tables(*llama, llama->tied ? 1 : 2) + static_cast<double>(llama->width) +
           static_cast<double>(dense) * dense_layer_of(*llama).parameters +
           static_cast<double>(llama->layers - dense) * mixed_layer_of(*llama).parameters;
  }
  const auto& recurrent = std::get<RecurrentLmConfig>(config);
  const auto h = static_cast<double>(recurrent.width);
  return tables(recurrent, recurrent.tied ? 1 : 2) +
         static_cast<double>(recurrent.layers) * gates_of(recurrent) * h * (2 * h + 2);
}

void check_model(const ModelConfig& config) {
  std::visit(
      [&](const auto& c) {
        check_range("a vocabulary", c.vocab, 1, kLargestSize);
        check_range("a width", c.width, 1, kLargestSize);
        check_range("a context", c.context, 1, kLargestSize);
        check(c.layers >= 1 && c.layers <= kMostLayers, c.layers,
              " layers make no sense; use 1 to ", kMostLayers);
        if constexpr (requires { c.heads; }) {
          check_range("a number of heads", c.heads, 1, kLargestSize);
          check_range("a head", c.head_dim, 0, kLargestSize);
        }
        if constexpr (requires { c.kv_rank; }) {
          check(c.head_dim > 0 || c.kv_rank > 0 || c.width % c.heads == 0, c.heads,
                " heads do not divide a width of ", c.width, "; give --head-dim");
          check_range("an ffn", c.hidden, 1, kLargestSize);
          check_attention(c);
          check_experts(c);
        } else if constexpr (requires { c.hidden; }) {
          check(c.head_dim > 0 || c.width % c.heads == 0, c.heads,
                " heads do not divide a width of ", c.width, "; give --head-dim");
          check_range("an ffn", c.hidden, 0, kLargestSize);
        }
      },
      config);
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
  check(!std::holds_alternative<RecurrentLmConfig>(config) || seq <= kMostRecurrentTokens,
        "a recurrent model is counted token by token: sequences of ", seq,
        " tokens are too long; use ", kMostRecurrentTokens, " at most");
  const auto vocab = std::visit([](const auto& c) { return static_cast<double>(c.vocab); }, config);
  const double elements = tokens * (elements_of(config) + vocab);
  const double flops = flops_of(config, tokens, static_cast<double>(seq));
  check(elements <= kMostElements && flops <= kMostFlops, "a micro-batch of ", batch,
        " sequences of ", seq, " tokens makes ", elements, " elements and ", flops,
        " FLOPs in one layer of this model and its head, which are counted exactly up to ",
        kMostElements, " and ", kMostFlops, "; use fewer tokens or a smaller model");
}

void check_positions(const ModelConfig& config, int64_t seq) {
  if (const auto* gpt2 = std::get_if<Gpt2Config>(&config))
    check(seq <= gpt2->context, "a sequence of ", seq, " tokens is longer than the ", gpt2->context,
          " positions that the model has a table of; use fewer tokens");
}

}  // namespace brrr
