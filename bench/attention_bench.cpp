// Attention as a GPT-2 124M layer calls it, and its gradient, and rotary embeddings of the same heads.
// bench/peers/torch_attention.py measures the same under the same names.
#include <benchmark/benchmark.h>

#include <tuple>

#include "brrr/brrr.h"

namespace {

using namespace brrr;

struct Case {
  const char* name;
  int64_t batch, heads, kv_heads, queries, keys, head_dim;
  bool causal;
};
constexpr Case kCases[] = {{"causal_b1_t256", 1, 12, 12, 256, 256, 64, true},
                           {"causal_b4_t1024", 4, 12, 12, 1024, 1024, 64, true},
                           {"full_b1_t1024", 1, 12, 12, 1024, 1024, 64, false},
                           {"grouped_b1_t1024", 1, 12, 4, 1024, 1024, 64, true},
                           {"causal_b1_t1024_d128", 1, 8, 8, 1024, 1024, 128, true},
                           {"decode_b4_t1024", 4, 12, 12, 1, 1024, 64, true}};

Tensor random(const Shape& shape, const char* name) {
  Random source(1);
  return normal(shape, source.stream(name));
}

void run(benchmark::State& state, const Case& c, bool backward) {
  const Tensor q = random({c.batch, c.heads, c.queries, c.head_dim}, "q"),
               k = random({c.batch, c.kv_heads, c.keys, c.head_dim}, "k"),
               v = random({c.batch, c.kv_heads, c.keys, c.head_dim}, "v"),
               seed = random({c.batch, c.heads, c.queries, c.head_dim}, "seed");
  const std::vector<Tensor> leaves{q, k, v};
  if (backward) q.require_grad(), k.require_grad(), v.require_grad();
  const AttentionOptions options{.causal = c.causal};
  CostCounter counter;
  attention(q, k, v, options);
  const double flops = static_cast<double>(counter.total().flops) * (backward ? 3.5 : 1);
  for (auto _ : state) {
    const Tensor out = attention(q, k, v, options);
    if (backward) benchmark::DoNotOptimize(grad(out, leaves, {.seed = seed}));
  }
  state.counters["flops"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

void run_rope(benchmark::State& state, int64_t batch, int64_t seq) {
  const Tensor x = random({batch, 12, seq, 64}, "x"), positions = arange(seq);
  for (auto _ : state) benchmark::DoNotOptimize(rope(x, positions));
}

int register_all() {
  for (const auto& [name, batch, seq] :
       {std::tuple{"rope_b1_t256", 1, 256}, std::tuple{"rope_b4_t1024", 4, 1024}}) {
    benchmark::RegisterBenchmark(
        name, [batch, seq](benchmark::State& state) { run_rope(state, batch, seq); })
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  }
  for (const Case& c : kCases) {
    for (bool backward : {false, true}) {
      const std::string name = std::string(c.name) + (backward ? "_training" : "_forward");
      benchmark::RegisterBenchmark(
          name.c_str(), [&c, backward](benchmark::State& state) { run(state, c, backward); })
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
  return 0;
}

[[maybe_unused]] const int registered = register_all();

}  // namespace
