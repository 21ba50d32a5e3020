// What one small op costs in eager mode: dispatch, allocation and the tape, hardly any arithmetic.
// bench/peers/torch_eager.py measures the same under the same names; bench/compare.py runs both.
#include "harness.h"

namespace {

using namespace brrr;

void add_one_element(benchmark::State& state) {
  const Tensor x = ones({1}), a = ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(x + a);
}
BENCHMARK(add_one_element);

void add_number(benchmark::State& state) {
  const Tensor x = ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(x + 2.0);
}
BENCHMARK(add_number);

void transpose_view(benchmark::State& state) {
  const Tensor x = ones({32, 32});
  for (auto _ : state) benchmark::DoNotOptimize(transpose(x));
}
BENCHMARK(transpose_view);

void scale_sum_backward_32x32(benchmark::State& state) {
  const Tensor x = ones({32, 32});
  x.require_grad();
  for (auto _ : state) {
    x.clear_grad();
    sum(x * 2).backward();
    benchmark::DoNotOptimize(x.grad());
  }
}
BENCHMARK(scale_sum_backward_32x32);

void matmul_16x16(benchmark::State& state) {
  const Tensor a = ones({16, 16}), b = ones({16, 16});
  for (auto _ : state) benchmark::DoNotOptimize(matmul(a, b));
}
BENCHMARK(matmul_16x16);

}  // namespace

int main(int argc, char** argv) { return brrr::bench::run_all(argc, argv); }
