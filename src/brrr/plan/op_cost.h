// One op on one device: FLOPs and bytes of its own cost rule on the null device, the regime by the roofline, and
// what tiles and waves leave unused.
//   floor = max(FLOPs / peak, bytes / bandwidth);   intensity = FLOPs / bytes;   ridge = peak / bandwidth
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/hardware/hardware.h"

namespace brrr::plan {

// Products are cut into tiles of the result, one multiprocessor each; a wave is as many as there are.
struct Quantisation {
  int64_t tiles = 0, waves = 0;
  int64_t tile_rows = 0, tile_columns = 0;
  double efficiency = 1;  // useful work over that of full tiles and full waves
};
Quantisation quantise(int64_t m, int64_t n, const hardware::GpuSpec& gpu);

// Blocks of the operands that computing a group of rows x columns blocks of a product loads, each product `depth`
// blocks deep: a square group shares more of them than a row.
constexpr int64_t block_loads(int64_t rows, int64_t columns, int64_t depth) {
  return (rows + columns) * depth;
}

// Blocks that keep a device busy to the end: four for each multiprocessor, so that the last ones hardly count. 0: how
// many multiprocessors there are is not known.
inline int64_t enough_blocks(const hardware::GpuSpec& gpu) {
  return int64_t{4} * gpu.multiprocessors;
}

struct OpSettings {
  bool full_square = false;  // attention: every query sees every key; causal without it
};

struct OpAnswer {
  std::string op;
  double flops = 0, bytes = 0;
  double naive_bytes = 0;            // of the same in separate ops; 0: not counted
  std::string flops_how, bytes_how;  // what was counted, for people
  std::string naive_how;
  double intensity = 0, ridge = 0;
  double compute_seconds = 0, memory_seconds = 0, floor_seconds = 0;
  std::string regime;      // "compute" or "memory"
  std::string arithmetic;  // of the peak: matrix units for products, fp32 cores for the rest
  Quantisation quantisation;
};

struct OpInfo {
  std::string_view name, sizes;  // "M N K"
  int least, most;               // how many sizes
};
std::span<const OpInfo> napkin_ops();

// Throws Error on an unknown op, with the list, and on sizes that do not fit it.
OpAnswer op_answer(std::string_view op, std::span<const int64_t> sizes, DType dtype,
                   const hardware::GpuSpec& gpu, const OpSettings& settings = {});

}  // namespace brrr::plan
