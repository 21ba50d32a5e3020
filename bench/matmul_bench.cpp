// The matrix products of a GPT-2 124M step: for every linear layer the forward product y = x W^T and the
// two of its gradient, dX = dY W and dW = dY^T X, at 256 and 1024 tokens.
// bench/peers/torch_matmul.py measures the same under the same names.
#include <benchmark/benchmark.h>

#include "brrr/brrr.h"

namespace {

using namespace brrr;

struct Layer {
  const char* name;
  int64_t in, out;
};
constexpr Layer kLayers[] = {{"qkv", 768, 2304},
                             {"projection", 768, 768},
                             {"up", 768, 3072},
                             {"down", 3072, 768},
                             {"head", 768, 50304}};

Tensor random(const Shape& shape, const char* name) {
  Random source(1);
  return normal(shape, source.stream(name));
}

// Counts as items per second, so the report shows FLOP/s.
void run(benchmark::State& state, const Tensor& a, const Tensor& b) {
  for (auto _ : state) benchmark::DoNotOptimize(matmul(a, b));
  const double flops = 2.0 * static_cast<double>(a.dim(0) * a.dim(1) * b.dim(1));
  state.counters["flops"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

void register_layer(const Layer& layer, int64_t tokens) {
  const std::string name = std::string(layer.name) + "_" + std::to_string(tokens);
  const auto add = [&](const char* product, auto make) {
    benchmark::RegisterBenchmark((name + "_" + product).c_str(),
                                 [make](benchmark::State& state) {
                                   const auto [a, b] = make();
                                   run(state, a, b);
                                 })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  };
  const Shape x{tokens, layer.in}, dy{tokens, layer.out}, weight{layer.out, layer.in};
  add("forward", [=] { return std::pair{random(x, "x"), transpose(random(weight, "w"))}; });
  add("dx", [=] { return std::pair{random(dy, "dy"), random(weight, "w")}; });
  add("dw", [=] { return std::pair{transpose(random(dy, "dy")), random(x, "x")}; });
}

}  // namespace

int main(int argc, char** argv) {
  for (int64_t tokens : {256, 1024}) {
    for (const Layer& layer : kLayers) register_layer(layer, tokens);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
