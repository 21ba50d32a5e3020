// einsum beside the product that a person would write by hand, call by call in turns. The counter
// `of_by_hand` is the median time of einsum divided by that of the product.
#include "harness.h"

namespace {

using namespace brrr;
using bench::random_tensor;

struct EinsumCase {
  std::string name, pattern;
  Shape a, b;
  std::function<Tensor(const Tensor&, const Tensor&)> by_hand;
};

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Short calls are timed in bunches of about 20 us, so that the clock's own 25 ns do not count.
void compare_in_turns(benchmark::State& state, const EinsumCase& c) {
  const Tensor a = random_tensor(c.a, "a"), b = random_tensor(c.b, "b");
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) benchmark::DoNotOptimize(c.by_hand(a, b));
  const int bunch = std::max(1, static_cast<int>(20e-6 * 10 / since(start)));
  std::vector<double> einsum_times, hand_times;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    while (since(begin) < 0.5 || einsum_times.size() < 5) {
      const auto first = std::chrono::steady_clock::now();
      for (int i = 0; i < bunch; ++i) benchmark::DoNotOptimize(einsum(c.pattern, {a, b}));
      einsum_times.push_back(since(first) / bunch);
      const auto second = std::chrono::steady_clock::now();
      for (int i = 0; i < bunch; ++i) benchmark::DoNotOptimize(c.by_hand(a, b));
      hand_times.push_back(since(second) / bunch);
    }
    state.SetIterationTime(median(einsum_times));
  }
  state.counters["of_by_hand"] = median(einsum_times) / median(hand_times);
}

void add(const EinsumCase& c) {
  benchmark::RegisterBenchmark(c.name.c_str(), compare_in_turns, c)
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

void register_cases() {
  const auto product = [](const Tensor& a, const Tensor& b) { return matmul(a, b); };
  const auto product_t = [](const Tensor& a, const Tensor& b) { return matmul(a, transpose(b)); };
  for (int64_t n : {16, 64, 256, 1024})
    add({"matrices_" + std::to_string(n), "i k, k j -> i j", {n, n}, {n, n}, product});
  add({"lecture_scores",
       "batch seq1 hidden, batch seq2 hidden -> batch seq1 seq2",
       {2, 3, 4},
       {2, 3, 4},
       product_t});
  add({"scores_256",
       "batch seq1 hidden, batch seq2 hidden -> batch seq1 seq2",
       {12, 256, 64},
       {12, 256, 64},
       product_t});
  add({"heads_64", "b h q d, b h k d -> b h q k", {4, 12, 64, 64}, {4, 12, 64, 64}, product_t});
  add({"linear_256", "b t i, o i -> b t o", {4, 64, 768}, {768, 768}, product_t});
  add({"batch_matrices", "... i k, ... k j -> ... i j", {8, 100, 50}, {8, 50, 70}, product});
}

}  // namespace

int main(int argc, char** argv) {
  register_cases();
  return brrr::bench::run_all(argc, argv);
}
