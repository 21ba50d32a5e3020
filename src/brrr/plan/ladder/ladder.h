// From one interpreted FLOP to the whole machine, measured here in one run, and what of the way each cause has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brrr::plan {

// What a step of the ladder takes away.
enum class Cause : uint8_t {
  interpreter,
  boxing,
  cache,
  registers,
  simd,
  cores,
  device,
  matrix_units,
  library
};
std::string_view to_text(Cause cause);
std::string_view meaning(Cause cause);  // in a line

struct Rung {
  std::string name, what;        // "naive C", "three loops, i j k"
  std::string dtype;             // "f64", "f32"
  int threads = 1;               // 0: a GPU
  Cause cause = Cause::library;  // of the step from the rung below
  double flops_per_second = 0;   // 0: not here
  std::string missing = {};      // why
  // A detour: shown beside the way, and the next rung goes on from the one before it.
  bool is_aside = false;

  bool is_here() const { return flops_per_second > 0; }
  bool is_gpu() const { return threads == 0; }
};

// A claim of the debate, in orders of magnitude, beside what was measured.
struct LadderClaim {
  std::string what, from, to;  // from one rung to another
  double least = 0, most = 0;  // orders of magnitude
  double measured = 0;
  bool is_measured = false;
  std::string verdict() const;
};

// What one cause has of the whole way. Factors multiply, so shares are of logarithms, and add up to 1.
struct CauseShare {
  Cause cause;
  double factor = 1, share = 0;
  std::string steps = {};  // "boxed > naive C"
};

struct Ladder {
  std::string machine, gpu;  // names; no GPU: empty
  int threads = 1;
  double peak_flops_per_second = 0;      // f32, all threads
  double gpu_peak_flops_per_second = 0;  // the best bf16 product
  std::vector<Rung> rungs;               // from the slowest idea to the quickest
  std::vector<LadderClaim> claims() const;
  std::vector<CauseShare> shares() const;
  double slowest() const;  // FLOP/s of the first rung that is here
  double fastest() const;
  double peak_of(const Rung& rung) const;
  // FLOP/s over those of the rung below that is no detour; 0 for the first.
  double factor(size_t rung) const;
  // A peak below a rung is none: short runs meet a cooler chip or a freer machine than the peak's own.
  void raise_peaks();
};

struct LadderOptions {
  int64_t size = 768;       // of the matrices; a multiple of 48
  int64_t slow_size = 384;  // for the rungs that would take too long
  int64_t gpu_size = 4096;  // of the matrices on a GPU; a multiple of 128
  std::string python = "python3";
};
Ladder climb(const LadderOptions& options = {});

}  // namespace brrr::plan
