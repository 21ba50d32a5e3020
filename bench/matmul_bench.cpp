// The matrix products of a GPT-2 124M step: for every linear layer the forward product y = x W^T and the
// two of its gradient, dX = dY W and dW = dY^T X, at 256 and 1024 tokens.
// bench/peers/torch_matmul.py measures the same under the same names.
#include "harness.h"

namespace {

using namespace brrr;
using bench::random_tensor;

struct LinearShape {
  const char* name;
  int64_t in, out;
};
constexpr LinearShape kLayers[] = {{"qkv", 768, 2304},
                                   {"projection", 768, 768},
                                   {"up", 768, 3072},
                                   {"down", 3072, 768},
                                   {"head", 768, 50304}};

void register_layer(const LinearShape& layer, int64_t tokens) {
  const std::string name = std::string(layer.name) + "_" + std::to_string(tokens);
  const double flops = 2.0 * static_cast<double>(tokens * layer.in * layer.out);
  const auto add = [&](const char* product, const auto& make) {
    bench::add_case(name + "_" + product, "flops", flops, [make]() -> std::function<void()> {
      const auto [a, b] = make();
      return [a = a, b = b] { benchmark::DoNotOptimize(matmul(a, b)); };
    });
  };
  const Shape x{tokens, layer.in}, dy{tokens, layer.out}, weight{layer.out, layer.in};
  add("forward", [=] {
    return std::pair{random_tensor(x, "x"), transpose(random_tensor(weight, "w"))};
  });
  add("dx", [=] { return std::pair{random_tensor(dy, "dy"), random_tensor(weight, "w")}; });
  add("dw", [=] { return std::pair{transpose(random_tensor(dy, "dy")), random_tensor(x, "x")}; });
}

}  // namespace

int main(int argc, char** argv) {
  for (int64_t tokens : {256, 1024}) {
    for (const LinearShape& layer : kLayers) register_layer(layer, tokens);
  }
  return brrr::bench::run_all(argc, argv);
}
