// How fast a machine runs each family of kernels: numbers measured at the points of small grids
// (cost/calibrate.h), read between the points by interpolation, stored as JSON one file a machine.
//
// Families by name; kernels find theirs in cost/kernel_family.h.
//   launch, fork_join            s           one kernel call; waking the other threads and waiting for them
//   peak.f32, peak.bf16, ...     flop/s      the roof of arithmetic: multiply-adds between registers, tensor cores
//   bandwidth, bandwidth.fused, optimizer  byte/s  by the bytes touched since the data was last used
//   matmul.nn .nt .tn            flop/s      by m, n, k; the letters say which operand is transposed
//   attention, attention_backward flop/s     by keys and head size
//   tile.OP                      element/s   one tile primitive on one thread, data in the L1 cache
//   OP, OP.row, OP.column        element/s   any other kernel, by elements and length of a row
//   matmul_gelu, matmul_sums, .. flop/s      products with an epilogue, by m, n, k
//   FAMILY.bf16 .f16 .fp8 .tf32              the same in another arithmetic than f32; it goes before FAMILY
//   scale.matmul.bf16, ...       ratio       products of that type over those of f32, where they have no grid
//   transfer.to_device.pinned .. byte/s      copies between host and device, pinned or pageable
//   kernel.OP operands           s           one product or attention of a model, measured by itself
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brrr::hardware {

struct RateAxis {
  std::string name;            // "m", "elements"
  std::vector<double> points;  // positive, ascending
};

// A positive quantity over zero to three axes: exact at the points, and between them linear in the
// logarithms of everything, since speed changes with the ratio of sizes. Outside the grid the nearest
// edge holds.
struct RateGrid {
  std::string unit;  // "flop/s", "byte/s", "element/s", "s", "ratio"
  std::vector<RateAxis> axes;
  std::vector<double> values;  // the last axis runs fastest

  double at(std::span<const double> where) const;
  double largest() const;
  size_t points() const;  // how many values the axes ask for
};

// How much of a set of rates was measured.
enum class RatesKind : uint8_t {
  assumed,  // from a hardware table or from peaks
  quick,    // every family, in two seconds on coarse grids
  full      // every family, by `brrr calibrate`
};
std::string_view to_text(RatesKind kind);  // "assumed", "quick", "full"

struct Rates {
  static constexpr int kVersion = 1;

  std::string machine;  // "Intel(R) Xeon(R) Processor, 2 threads"
  int threads = 1;
  bool calibrated = false;  // false: from a hardware table or from peaks; predictions say so
  bool quick = false;       // calibrated on coarse grids
  std::string source;       // when and how, for people
  // Products copy their operands into panels before they multiply, as those of the CPU do: the time of
  // their bytes comes on top of that of their arithmetic instead of hiding behind it.
  bool packs_operands = false;
  std::map<std::string, RateGrid, std::less<>> grids;

  RatesKind kind() const {
    return !calibrated ? RatesKind::assumed : quick ? RatesKind::quick : RatesKind::full;
  }
  const RateGrid* find(std::string_view family) const;
  // The grid of a family that every set of rates has (launch, bandwidth, ...).
  const RateGrid& grid(std::string_view family) const;
  double number(std::string_view family) const { return grid(family).at({}); }  // without axes
};

// A grid without axes.
RateGrid constant_rate(std::string unit, double value);

// What is left when families were not measured: one speed of arithmetic, one of memory.
struct PlainRates {
  double flops_per_second;
  double bytes_per_second;
  double launch_seconds;
  double bf16_speedup = 1;  // of contractions
};
Rates rates_from_peaks(std::string machine, const PlainRates& peaks);

// The JSON form. `parse_rates` takes text from outside: it throws Error, naming `origin`, on anything
// but a complete file of this version.
std::string to_json(const Rates& rates);
Rates parse_rates(std::string_view text, std::string_view origin);
// Written next to its place and renamed, so that a reader never sees half a file, whoever else writes it too.
void save_rates(const Rates& rates, const std::string& path);
Rates load_rates(const std::string& path);

}  // namespace brrr::hardware
