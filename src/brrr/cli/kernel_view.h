// --kernels: the kernels of a planned step in launch order, the same for every command that plans one.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "brrr/cost/kernel_lines.h"

namespace brrr::cli {

// [{"name": "linear", "phase": "forward", "dtype": "bf16", "shape": "[64, 1024, 2304]", "count": 1, ...}, ...]
nlohmann::json kernels_json(const std::vector<cost::KernelLine>& kernels);
void print_kernels(const std::vector<cost::KernelLine>& kernels);

}  // namespace brrr::cli
