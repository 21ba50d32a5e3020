// The memory of published runs: what a plan says must be there, beside what an allocator held.
#include "brrr/napkin/published.h"
#include "brrr/napkin/run_question.h"

namespace brrr {
namespace {

constexpr double kGiB = 1073741824, kMiB = 1048576;

double torchtitan_gib(bool fuse) {
  RunQuestion q;
  q.model = llama_preset("llama3-8b");
  q.tokens = 1e9;
  q.gpu = "h100-96", q.count = 8;
  q.seq = 8192, q.global_batch = 16, q.micro_batch = 2;
  q.layout.zero = 3;
  q.recompute = RematPolicy::selective;
  q.system.fuse = fuse;
  return answer(q).memory.total() / kGiB;
}

// The buffers that llmq's run state names, in MiB: bf16, products in fp8, feed-forward and attention recomputed, norms
// kept. A layer keeps two residual streams, two normalised inputs in fp8, and f32 statistics; all else exists once.
double llmq_activations_mib() {
  const LlamaConfig c = llama_preset("qwen2.5-0.5b");
  constexpr double kRows = 8 * 1024;  // tokens of a micro-batch
  const auto width = static_cast<double>(c.width), hidden = static_cast<double>(c.hidden),
             heads = static_cast<double>(c.heads), layers = static_cast<double>(c.layers);
  const double qkv = width * (1 + 2 * static_cast<double>(c.kv_heads) / heads);
  const double layer = kRows * (2 * 2 * width + 2 * width + 4 * heads + 2 * 4);
  // Forward: norm, qkv, attention, gate and up, their product; the last two also in fp8 beside attention's output.
  const double forward = kRows * (2 * (width + qkv + width + 3 * hidden) + width + hidden);
  const double backward = kRows * (2 * (width + 3 * hidden + qkv) + width + 2 * hidden + qkv);
  const double transposed = kRows * 3 * hidden + 2 * width * hidden;  // operands of fp8 products
  const double ends = kRows * (2 * 4 * width + 2 * static_cast<double>(c.vocab));
  return (layers * layer + forward + backward + transposed + ends) / kMiB;
}

}  // namespace

std::vector<PublishedCase> memory_cases() {
  std::vector<PublishedCase> cases;
  const auto add = [&](const char* id, const char* what, const char* unit, double published,
                       double ours, const char* source, const char* reason) {
    cases.push_back({.id = id,
                     .what = what,
                     .unit = unit,
                     .published = published,
                     .predicted = ours,
                     .kind = CaseClass::bound,
                     .band = 0,
                     .source = source,
                     .reason = reason,
                     .side = Side::least});
  };
  const char* reserved =
      "published is what the caching allocator reserved, its gaps included; ours is what must be "
      "alive";
  add("A22", "torchtitan, Llama-3.1-8B, FSDP, compiled: memory", "GiB", 77.0, torchtitan_gib(true),
      "torchtitan", reserved);
  add("A22", "eager: memory", "GiB", 82.4, torchtitan_gib(false), "torchtitan", reserved);
  add("A28", "Qwen2.5-0.5B, recomputed, 8 x 1024 tokens: activations", "MiB", 4505,
      llmq_activations_mib(), "llmq",
      "the buffers that its source names; tables and workspaces of libraries come on top");
  return cases;
}

}  // namespace brrr
