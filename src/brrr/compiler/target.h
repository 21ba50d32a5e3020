// What a program is compiled for: a backend and the facts of its hardware. It needs no device to be there, so a plan for
// an H200 made on a laptop has the kernels that an H200 runs. A Device says where bytes are, and nothing more.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/device/chip.h"
#include "brrr/device/device.h"

namespace brrr::compiler {

struct Backend;  // compiler/backend.h

struct Target {
  std::string name;  // "cpu", "cuda:h200", "cuda:0"
  const Backend* backend = nullptr;
  Chip chip = {};  // of a GPU
  std::string gpu =
      {};  // its name in the hardware table; empty: not a GPU, or one that the table lacks
  std::optional<int> index;  // of a device that is here, whose libraries can be asked
  bool generates = true;     // whether kernels are generated: false without a compiler for them

  bool is_accelerator() const { return chip.sm_count > 0; }         // it has memory of its own
  bool has_tensor_cores() const { return chip.is_at_least(8, 0); }  // for bf16 and tf32
  // The device that is here. Throws Error for a target that a program can only be planned for.
  Device device() const;
};

// Defined in backends/targets.cpp, the one place that knows every backend.
const Target& cpu_target();
Target target_of(
    Device device);  // of a device that is here; the null device counts what the CPU would run
// "cpu", "cuda" (the first GPU here), "cuda:0" (a GPU here), "cuda:h200" (one of the hardware table, here or not).
// Throws Error with what there is.
Target parse_target(std::string_view text);
// True for "cuda:h200" and its like: a program for it can be planned here, and not run.
bool is_planned_only(const Target& target);
std::vector<const Backend*> known_backends();

}  // namespace brrr::compiler
