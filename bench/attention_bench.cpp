// Attention as a layer of GPT-2 124M calls it and in other shapes, and rotary embeddings; forward, and
// forward with backward, f32. "l2": operands that stay in the L2 caches, "dram": operands that do not.
// bench/peers/torch_attention.py measures the same under the same names.
#include "harness.h"

namespace {

using namespace brrr;
using bench::Call;
using bench::random_tensor;

struct AttentionSize {
  const char* name;
  int64_t batch, heads, kv_heads, queries, keys, head_dim;
  bool causal;
};
constexpr AttentionSize kAttention[] = {{"attention_l2", 1, 12, 12, 256, 256, 64, true},
                                        {"attention_dram", 4, 12, 12, 1024, 1024, 64, true},
                                        {"attention_full", 1, 12, 12, 1024, 1024, 64, false},
                                        {"attention_grouped", 1, 12, 4, 1024, 1024, 64, true},
                                        {"attention_head128", 1, 8, 8, 1024, 1024, 128, true},
                                        {"attention_decode", 4, 12, 12, 1, 1024, 64, true}};

// Two products forward, 4 FLOP for each visible score and element of a head; backward recomputes the
// scores and has four more.
void add_attention(const AttentionSize& size) {
  const bool half = size.causal && size.queries > 1;  // the last query sees every key
  const double scores = static_cast<double>(size.queries * size.keys) * (half ? 0.5 : 1.0);
  const double flops = 4.0 * scores * static_cast<double>(size.batch * size.heads * size.head_dim);
  bench::add_kernel(
      size.name, {.unit = "flops", .forward = flops, .forward_backward = 3.5 * flops},
      [=]() -> Call {
        const Shape kv{size.batch, size.kv_heads, size.keys, size.head_dim};
        const Tensor q = random_tensor({size.batch, size.heads, size.queries, size.head_dim}, "q"),
                     k = random_tensor(kv, "k"), v = random_tensor(kv, "v");
        const AttentionOptions options{.causal = size.causal};
        return {.leaves = {q, k, v}, .run = [=] { return attention(q, k, v, options); }};
      });
}

// x -> y, then dy -> dx, with the table of cosines and sines made before, as the peer has it.
void add_rope(const char* name, const Shape& heads) {
  const double bytes = static_cast<double>(numel(heads)) * sizeof(float);
  bench::add_kernel(name, {.unit = "bytes", .forward = 2 * bytes, .forward_backward = 4 * bytes},
                    [=]() -> Call {
                      const Tensor x = random_tensor(heads, "x"),
                                   table = rope_table(arange(heads[2]), heads[3] / 2);
                      return {.leaves = {x}, .run = [=] { return rope(x, table); }};
                    });
}

}  // namespace

int main(int argc, char** argv) {
  for (const AttentionSize& size : kAttention) add_attention(size);
  add_rope("rope_l2", {1, 12, 256, 64});
  add_rope("rope_dram", {16, 12, 2048, 64});
  return brrr::bench::run_all(argc, argv);
}
