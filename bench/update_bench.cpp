// The optimizer against its floor. An update of AdamW reads weight, gradient and two moments and writes
// three of them: 28 B a parameter. `traffic` moves the same bytes with three additions, `copy` as many
// bytes by copying; `adamw` in the L2 cache shows the arithmetic alone.
#include "harness.h"

namespace {

using namespace brrr;

constexpr int64_t kInMemory = int64_t{1} << 25, kInL2 = int64_t{1} << 15;

void add_update(const char* name, int64_t elements) {
  bench::add_case(
      name, "bytes", 28.0 * static_cast<double>(elements), [elements]() -> std::function<void()> {
        const Tensor weight = bench::random_tensor({elements}, "w"),
                     gradient = bench::random_tensor({elements}, "g");
        auto optimizer = std::make_shared<AdamW>(std::vector<NamedTensor>{{"weight", weight}});
        auto step = std::make_shared<runtime::CompiledFunction>(
            [optimizer](std::span<const Tensor> in) {
              optimizer->update({in.begin(), in.end()}, 1e-4);
              return Tensors{};
            },
            compiler::PipelineOptions{});
        return [gradient, step] { step->run({{gradient}}); };
      });
}

void add_traffic(const char* name, int64_t elements) {
  bench::add_case(name, "bytes", 28.0 * static_cast<double>(elements),
                  [elements]() -> std::function<void()> {
                    const std::vector<Tensor> states{bench::random_tensor({elements}, "w"),
                                                     zeros({elements}), zeros({elements})};
                    const Tensor gradient = bench::random_tensor({elements}, "g");
                    auto step = std::make_shared<runtime::CompiledFunction>(
                        [states](std::span<const Tensor> in) {
                          for (const Tensor& x : states) x.copy_from(x + in[0]);
                          return Tensors{};
                        },
                        compiler::PipelineOptions{});
                    return [gradient, step] { step->run({{gradient}}); };
                  });
}

void add_copy(const char* name, int64_t elements) {
  const int64_t copied = elements * 28 / 8;
  bench::add_case(name, "bytes", 28.0 * static_cast<double>(elements),
                  [copied]() -> std::function<void()> {
                    const Tensor from = bench::random_tensor({copied}, "x"), to = zeros({copied});
                    return [from, to] { to.copy_from(from); };
                  });
}

}  // namespace

int main(int argc, char** argv) {
  add_update("adamw_in_l2", kInL2);
  add_update("adamw", kInMemory);
  add_traffic("traffic", kInMemory);
  add_copy("copy", kInMemory);
  return brrr::bench::run_all(argc, argv);
}
