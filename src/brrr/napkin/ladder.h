// From one interpreted FLOP to the whole machine, measured here in one run, and what of the way each cause has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brrr {

// What a step of the ladder takes away.
enum class Cause : uint8_t { interpreter, boxing, cache, registers, simd, cores, device, rest };
std::string_view to_text(Cause cause);

struct Rung {
  std::string name, what;  // "naive C", "three loops, i j k"
  std::string dtype;       // "f64", "f32"
  int threads = 1;
  Cause cause = Cause::rest;         // of the step from the rung below
  double flops_per_second = 0;       // 0: not here
  std::string missing = {};          // why
  double peak_flops_per_second = 0;  // of the device that it ran on; 0: that of the ladder
};

// A claim of the debate, in orders of magnitude, beside what was measured.
struct LadderClaim {
  std::string what;
  double least = 0, most = 0;  // orders of magnitude
  double measured = 0;
  bool is_measured = false;
  std::string verdict() const;
};

struct Ladder {
  std::string machine;
  int threads = 1;
  double peak_flops_per_second = 0;  // measured, f32, all threads
  std::vector<Rung> rungs;           // from the slowest idea to the quickest
  std::vector<LadderClaim> claims() const;
  // By cause: the share of the whole way, in logarithms. They add up to 1.
  std::vector<std::pair<Cause, double>> shares() const;
  double slowest() const;  // FLOP/s of the first rung that is here
  double fastest() const;
};

struct LadderOptions {
  int64_t size = 768;       // of the matrices; a multiple of 48
  int64_t slow_size = 384;  // for the rungs that would take too long
  int64_t gpu_size = 4096;  // of the matrices on a GPU; a multiple of 64
  std::string python = "python3";
};
Ladder climb(const LadderOptions& options = {});

}  // namespace brrr
