// What a compiled program costs besides its arithmetic: an empty step, one tiny kernel after another on
// one thread, many states, a loop; and apart from them what it costs to start and join threads.
#include "harness.h"

namespace {

using namespace brrr;

constexpr int kKernels = 256;

void per_kernel(benchmark::State& state, int64_t kernels) {
  state.counters["per_kernel"] = benchmark::Counter(
      static_cast<double>(kernels),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void empty_step(benchmark::State& state) {
  auto step = runtime::compile([] {});
  step();
  for (auto _ : state) step();
}
BENCHMARK(empty_step);

void empty_step_with_input(benchmark::State& state) {
  auto step = runtime::compile([](const Tensor&) {});
  const Tensor x = ones({4});
  step(x);
  for (auto _ : state) step(x);
}
BENCHMARK(empty_step_with_input);

void returns_a_number(benchmark::State& state) {
  auto step = runtime::compile([](const Tensor& x) { return x + x; });
  const Tensor x = ones({4});
  for (auto _ : state) benchmark::DoNotOptimize(step(x));
}
BENCHMARK(returns_a_number);

// Kernels of 16 elements, each by itself: hardly any arithmetic.
template <typename Op>
void chain(benchmark::State& state, const Op& op) {
  auto step = runtime::compile(
      [&](const Tensor& x) {
        Tensor y = x;
        for (int i = 0; i < kKernels; ++i) y = op(y, x);
        return y;
      },
      {.without = {"simplify", "fuse"}});
  const Tensor x = full({4, 4}, 0.01);
  const auto kernels =
      static_cast<int64_t>(step.function().executable({{x}}).kernels().kernels.size());
  for (auto _ : state) benchmark::DoNotOptimize(step(x));
  per_kernel(state, kernels);
}
void chain_of_adds(benchmark::State& state) {
  chain(state, [](const Tensor& y, const Tensor& x) { return y + x; });
}
BENCHMARK(chain_of_adds);
void chain_of_negations(benchmark::State& state) {
  chain(state, [](const Tensor& y, const Tensor&) { return neg(y); });
}
BENCHMARK(chain_of_negations);
void chain_of_broadcasts(benchmark::State& state) {
  chain(state, [](const Tensor& y, const Tensor& x) { return y * x[0]; });
}
BENCHMARK(chain_of_broadcasts);
void chain_of_products(benchmark::State& state) {
  chain(state, [](const Tensor& y, const Tensor& x) { return matmul(y, x); });
}
BENCHMARK(chain_of_products);
void chain_of_row_sums(benchmark::State& state) {
  chain(state, [](const Tensor& y, const Tensor&) { return sum(y, {1}, KeepDims::yes) + y; });
}
BENCHMARK(chain_of_row_sums);

// Fused kernels that cannot join: every one is followed by a product.
void chain_of_fused(benchmark::State& state) {
  auto step = runtime::compile([&](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < kKernels / 2; ++i) y = matmul(exp(y * 0.5) - x, x);
    return y;
  });
  const Tensor x = full({4, 4}, 0.01);
  const auto kernels =
      static_cast<int64_t>(step.function().executable({{x}}).kernels().kernels.size());
  for (auto _ : state) benchmark::DoNotOptimize(step(x));
  per_kernel(state, kernels);
}
BENCHMARK(chain_of_fused);

// The states of a model with AdamW, all written in place.
void writes_450_states(benchmark::State& state) {
  std::vector<Tensor> states;
  for (int i = 0; i < 450; ++i) states.push_back(ones({4}));
  auto step = runtime::compile([&](const Tensor& x) {
    for (const Tensor& w : states) w.copy_from(w + x);
  });
  const Tensor x = ones({4});
  step(x);
  for (auto _ : state) step(x);
  per_kernel(state, 450);
}
BENCHMARK(writes_450_states);

void repeat_of_64_iterations(benchmark::State& state) {
  auto step = runtime::compile([](const Tensor& x, const Tensor& n) {
    return repeat(n, {x}, [](const Tensor& row) { return row; })[0];
  });
  const Tensor x = ones({64, 16}), n = full({}, 64, {.dtype = DType::i64});
  for (auto _ : state) benchmark::DoNotOptimize(step(x, n));
  per_kernel(state, 64);
}
BENCHMARK(repeat_of_64_iterations);

void fork_and_join(benchmark::State& state) {
  ThreadPool& pool = thread_pool();
  for (auto _ : state) pool.for_each_piece(bench::kThreads, [](int64_t) {});
}
BENCHMARK(fork_and_join);

}  // namespace

int main(int argc, char** argv) { return brrr::bench::run_all(argc, argv); }
