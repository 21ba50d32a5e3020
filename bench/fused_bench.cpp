// Fused elementwise work of 2^22 floats: cos(cos(x)), the essay's example. bench/peers/torch_fused.py
// measures the same op by op (cos_cos) and through torch.compile (cos_cos_compiled).
#include "harness.h"

namespace {

using namespace brrr;

void add_cos(const char* name) {
  constexpr int64_t kElements = int64_t{1} << 22;
  bench::add_case(name, "bytes", 8.0 * kElements, []() -> std::function<void()> {
    const Tensor x = bench::random_tensor({kElements}, "x");
    auto fused = std::make_shared<runtime::CompiledFunction>(
        [](std::span<const Tensor> in) { return Tensors{cos(cos(in[0]))}; },
        compiler::PipelineOptions{});
    return [x, fused] { benchmark::DoNotOptimize(fused->run({{x}})); };
  });
}

}  // namespace

int main(int argc, char** argv) {
  add_cos("cos_cos");
  add_cos("cos_cos_compiled");
  return brrr::bench::run_all(argc, argv);
}
