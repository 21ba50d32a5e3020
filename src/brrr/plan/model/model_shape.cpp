// What of a model one tensor-parallel device has.
#include "brrr/plan/model/model_cost.h"

namespace brrr::plan {
namespace {

// Why tensor parallelism of a degree does not split a model; empty where it does.
std::string split_refusal(const ModelConfig& config, int64_t degree) {
  const ModelShape shape = shape_of(config);
  if (shape.heads == 0) return "recurrent models are not split by tensor parallelism";
  const std::pair<int64_t, const char*> parts[] = {
      {shape.heads, "heads"},
      {shape.hidden, "hidden units"},
      {shape.experts > 0 ? shape.expert_hidden : 0, "hidden units of an expert"},
      {shape.shared_expert_hidden, "hidden units of shared experts"}};
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
  ModelConfig shard = config;
  shard.set("vocab", vocab);
  shard.set("heads", shape.heads / degree);
  shard.set_if_there("head_dim", shape.head_dim);
  shard.set_if_there("kv_heads", kv_heads);
  shard.set_if_there("hidden", shape.hidden / degree);
  for (const char* each : {"expert_hidden", "shared_expert_hidden"})
    shard.set_if_there(each, config.size(each) / degree);
  return shard;
}

}  // namespace brrr::plan
