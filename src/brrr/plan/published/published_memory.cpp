// The memory of published runs: what a plan says must be there, beside what an allocator held.
#include "brrr/plan/published/published_toml.h"

namespace brrr::plan {
namespace {

constexpr double kGiB = 1073741824, kMiB = 1048576;

// What our own plan for the run needs: brrr's policy of recomputation, and a head in chunks.
double planned_gib(bool fuse) {
  RunQuestion q;
  q.model = llama_preset("llama3-8b");
  q.tokens = 1e9;
  q.gpu = "h100-96", q.count = 8;
  q.seq = 8192, q.global_batch = 16, q.micro_batch = 2;
  q.layout.zero = 3;
  q.recompute = compiler::RematPolicy::selective;
  q.system.fuse = fuse;
  return answer(q).memory.total() / kGiB;
}

// What llmq's run state allocates, in MiB: bf16, products in fp8, feed-forward and attention recomputed, norms kept. A
// layer keeps two residual streams, two normalised inputs in fp8, and f32 statistics; all else exists once.
double llmq_activations_mib() {
  const LlamaConfig c = llama_preset("qwen2.5-0.5b");
  constexpr double kSequences = 8, kTokens = 1024, kRows = kSequences * kTokens;
  constexpr double kPositions = 32768,
                   kMultiprocessors = 128;  // of the model's config; of the 4090
  const auto width = static_cast<double>(c.width), hidden = static_cast<double>(c.hidden),
             heads = static_cast<double>(c.heads), layers = static_cast<double>(c.layers);
  const double size = width / heads;
  const double qkv = width + 2 * size * static_cast<double>(c.kv_heads);
  const double layer = kRows * (2 * 2 * width + 2 * width + 4 * heads + 2 * 4);
  // Forward: norm, qkv, attention, gate and up, their product; the last two also in fp8 beside attention's output.
  const double forward = kRows * (2 * (width + qkv + width + 3 * hidden) + width + hidden);
  const double backward = kRows * (2 * (width + 3 * hidden + qkv) + width + 2 * hidden + qkv);
  const double transposed = kRows * 3 * hidden + 2 * width * hidden;  // operands of fp8 products
  const double ends = kRows * (2 * 4 * width + 2 * static_cast<double>(c.vocab) + 4 * 4);
  const double rotations = kPositions * 2 * size * 2;
  // Partial sums of norms (two blocks a multiprocessor); an index of tokens, 5 numbers for every 256 columns.
  const double sums = 2 * kMultiprocessors * (4 * width + 128), index = kRows * 4 * 5 * 4;
  // cuDNN's backward with set_deterministic_algorithm: gradients of all scores in bf16, of every head's keys and
  // values before heads that share them are added, and the row sums of dO O.
  const double scores = kSequences * heads * kTokens * (2 * kTokens + 2 * 2 * size + 4);
  return (layers * layer + forward + backward + transposed + ends + rotations + sums + index +
          scores) /
         kMiB;
}

}  // namespace

double TorchtitanMemory::total() const {
  return states + kept + ends + logits + gathered + working;
}

// The fullest instant is the backward of log_softmax. What is reserved then is what is alive, and what an allocator
// holds for streams and sizes that nothing else can take:
//  - states of a rank in f32, its gradients too: they come from the stream of reductions, whose memory no other gets;
//  - of each layer its input, and of the products q, k, v, o, gate, up, down every other one (q, v, gate, down), with
//    attention's result and its row sums. Compiled blocks do not keep what backward never reads, the result of down;
//  - around the last norm, which is not compiled: its input in bf16 and f32, the squares, two results;
//  - logits in bf16, and in f32 their logarithms of softmax and two gradients (the loss is not compiled, either);
//  - tables that are not sharded again after the forward part, once gathered and once in the buffer of the gathering
//    stream, and the last layer's weights;
//  - what the widest place of a forward layer had: input, activated gate (fused where compiled), up, their product.
TorchtitanMemory torchtitan_memory(int64_t ranks, bool compiled) {
  const LlamaConfig c = llama_preset("llama3-8b");
  constexpr double kTokens = 2 * 8192;
  const auto width = static_cast<double>(c.width), hidden = static_cast<double>(c.hidden),
             layers = static_cast<double>(c.layers), heads = static_cast<double>(c.heads),
             vocab = static_cast<double>(c.vocab);
  const double keys = width * static_cast<double>(c.kv_heads) / heads;
  const double layer = width * (2 * width + 2 * keys + 3 * hidden) + 2 * width;
  const double tables = 2 * vocab * width;  // of tokens, and the head
  const double kept_elements = 3 * width + keys + hidden + (compiled ? 0 : width);
  return {.states = 16 * (layers * layer + tables + width) / static_cast<double>(ranks),
          .kept = layers * kTokens * (2 * kept_elements + 4 * heads),
          .ends = kTokens * width * (2 + 4 + 4 + 2 + 2),
          .logits = kTokens * vocab * (2 + 3 * 4),
          .gathered = 2 * 2 * tables + 2 * layer,
          .working = kTokens * 2 * (width + (compiled ? 2 : 3) * hidden)};
}

std::vector<PublishedCase> memory_cases() {
  std::vector<PublishedCase> cases;
  const auto add = [&](std::string_view key, double ours) {
    cases.push_back(number_case("memory", key, ours));
  };
  const auto torchtitan = [](int64_t ranks, bool compiled) {
    return torchtitan_memory(ranks, compiled).total() / kGiB;
  };
  add("A22.compiled_8", torchtitan(8, true));
  add("A22.eager_8", torchtitan(8, false));
  add("A22.compiled_128", torchtitan(128, true));
  add("A22.eager_128", torchtitan(128, false));
  add("A22.own_compiled", planned_gib(true));
  add("A22.own_eager", planned_gib(false));
  add("A28.activations", llmq_activations_mib());
  return cases;
}

}  // namespace brrr::plan
