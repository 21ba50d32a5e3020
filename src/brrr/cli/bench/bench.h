// The experiments of `brrr bench`, one file each.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

namespace brrr::cli {

void add_bench_intensity(CLI::App& bench);
void add_bench_cos(CLI::App& bench);
void add_bench_regimes(CLI::App& bench);
void add_bench_step(CLI::App& bench);
void add_bench_mfu(CLI::App& bench);
void add_bench_kernels(CLI::App& bench);

// The median time of each, taken in turn `rounds` times after one call to warm up: whatever slows the
// machine for a while slows all of them.
std::vector<double> time_in_turn(const std::vector<std::function<void()>>& work, int rounds);

}  // namespace brrr::cli
