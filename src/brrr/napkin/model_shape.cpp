// Sizes of models of all families under one set of names, and what of them one tensor-parallel device has.
#include "brrr/napkin/model_cost.h"

namespace brrr {
namespace {

void require_divides(std::string_view what, int64_t size, int64_t degree) {
  check(size % degree == 0, "tensor parallelism of ", degree, " does not divide ", size, " ", what,
        "; use a degree that does");
}

}  // namespace

ModelShape shape_of(const ModelConfig& config) {
  if (const auto* gpt2 = std::get_if<Gpt2Config>(&config)) {
    const int64_t head = gpt2->head_dim > 0 ? gpt2->head_dim : gpt2->width / gpt2->heads;
    return {.layers = gpt2->layers,
            .width = gpt2->width,
            .heads = gpt2->heads,
            .kv_heads = gpt2->heads,
            .hidden = gpt2->hidden > 0 ? gpt2->hidden : 4 * gpt2->width,
            .vocab = gpt2->vocab,
            .pair_width = static_cast<double>(gpt2->heads * head)};
  }
  if (const auto* llama = std::get_if<LlamaConfig>(&config)) {
    const int64_t head = llama->head_dim > 0 ? llama->head_dim : llama->width / llama->heads;
    const double pair =
        llama->kv_rank > 0
            ? static_cast<double>(llama->nope_dim + llama->rope_dim + llama->value_dim) / 2
            : static_cast<double>(head);
    return {.layers = llama->layers,
            .width = llama->width,
            .heads = llama->heads,
            .kv_heads = llama->kv_heads > 0 ? llama->kv_heads : llama->heads,
            .hidden = llama->hidden,
            .vocab = llama->vocab,
            .pair_width = static_cast<double>(llama->heads) * pair};
  }
  const auto& recurrent = std::get<RecurrentLmConfig>(config);
  return {.layers = recurrent.layers, .width = recurrent.width, .vocab = recurrent.vocab};
}

ModelConfig tensor_shard(const ModelConfig& config, int64_t degree) {
  check(degree >= 1, "a tensor-parallel degree of ", degree, " is none; use 1 or more");
  if (degree == 1) return config;
  const ModelShape shape = shape_of(config);
  check(shape.heads > 0, "recurrent models are not split by tensor parallelism");
  require_divides("heads", shape.heads, degree);
  require_divides("hidden units", shape.hidden, degree);
  // Vocabularies are padded to a multiple, as every system does; key heads below the degree are copied.
  const int64_t vocab = (shape.vocab + degree - 1) / degree;
  const int64_t kv_heads = std::max<int64_t>(1, shape.kv_heads / degree);
  if (const auto* gpt2 = std::get_if<Gpt2Config>(&config)) {
    Gpt2Config shard = *gpt2;
    shard.head_dim = gpt2->head_dim > 0 ? gpt2->head_dim : gpt2->width / gpt2->heads;
    shard.heads /= degree, shard.hidden = shape.hidden / degree, shard.vocab = vocab;
    return shard;
  }
  LlamaConfig shard = std::get<LlamaConfig>(config);
  shard.head_dim = shard.head_dim > 0 ? shard.head_dim : shard.width / shard.heads;
  shard.heads /= degree, shard.kv_heads = kv_heads, shard.vocab = vocab;
  shard.hidden = shape.hidden / degree;
  if (shard.expert_hidden > 0) {
    require_divides("hidden units of an expert", shard.expert_hidden, degree);
    shard.expert_hidden /= degree;
  }
  shard.shared_expert_hidden /= degree;
  return shard;
}

}  // namespace brrr
