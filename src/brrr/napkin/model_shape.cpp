// Sizes of models of all families under one set of names, and what of them one tensor-parallel device has.
#include "brrr/napkin/model_cost.h"

namespace brrr {
namespace {

// Why tensor parallelism of a degree does not split a model; empty where it does.
std::string split_refusal(const ModelConfig& config, int64_t degree) {
  const ModelShape shape = shape_of(config);
  if (shape.heads == 0) return "recurrent models are not split by tensor parallelism";
  const auto* llama = std::get_if<LlamaConfig>(&config);
  const std::pair<int64_t, const char*> parts[] = {
      {shape.heads, "heads"},
      {shape.hidden, "hidden units"},
      {llama ? llama->expert_hidden : 0, "hidden units of an expert"},
      {llama ? llama->shared_expert_hidden : 0, "hidden units of shared experts"}};
  for (const auto& [size, what] : parts) {
    if (size % degree != 0)
      return join_text("tensor parallelism of ", degree, " does not divide ", size, " ", what,
                       "; use a degree that does");
  }
  // Key heads are shared out whole, or each is copied to the devices that have its queries.
  if (shape.kv_heads % degree != 0 && degree % shape.kv_heads != 0)
    return join_text("tensor parallelism of ", degree, " neither divides ", shape.kv_heads,
                     " key heads nor is a multiple of them; use a degree that is");
  return "";
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

bool splits_by(const ModelConfig& config, int64_t degree) {
  return degree == 1 || split_refusal(config, degree).empty();
}

ModelConfig tensor_shard(const ModelConfig& config, int64_t degree) {
  check(degree >= 1, "a tensor-parallel degree of ", degree, " is none; use 1 or more");
  if (degree == 1) return config;
  const std::string refusal = split_refusal(config, degree);
  check(refusal.empty(), refusal);
  const ModelShape shape = shape_of(config);
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
  shard.expert_hidden /= degree;
  shard.shared_expert_hidden /= degree;
  return shard;
}

}  // namespace brrr
