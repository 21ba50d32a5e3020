// brrr bench: experiments that show a machine's regimes.
#include "brrr/cli/bench/bench.h"

#include <algorithm>
#include <chrono>

#include "brrr/cli/commands.h"

namespace brrr::cli {

std::vector<double> time_in_turn(const std::vector<std::function<void()>>& work, int rounds) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::vector<double>> times(work.size());
  for (const std::function<void()>& one : work) one();
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < work.size(); ++i) {
      const Clock::time_point start = Clock::now();
      work[i]();
      times[i].push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& all : times) {
    std::sort(all.begin(), all.end());
    medians.push_back(all[all.size() / 2]);
  }
  return medians;
}

void add_bench(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "Experiments that show what bounds this machine");
  command->require_subcommand(1);
  add_bench_intensity(*command);
  add_bench_cos(*command);
  add_bench_regimes(*command);
  add_bench_step(*command);
  add_bench_mfu(*command);
  add_bench_kernels(*command);
  command->footer(
      "Examples:\n"
      "  brrr bench intensity            more arithmetic on the same bytes, until it is the bound\n"
      "  brrr bench cos                  what fusing two cosines saves\n"
      "  brrr bench regimes --max-n 2048 overhead, then bandwidth, then compute\n"
      "  brrr bench step                 a training step op by op, compiled, and fused\n"
      "  brrr bench mfu                  one large product in f32, tf32, bf16 and fp8 on a GPU\n"
      "  brrr bench kernels              norms, softmax, classifier and attention on a GPU");
}

}  // namespace brrr::cli
