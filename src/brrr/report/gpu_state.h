// Clocks, power and throttle reasons of a GPU as lines of a report; what the driver does not tell is said to be not
// available.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "brrr/device/gpu_watch.h"
#include "brrr/device/nvml.h"

namespace brrr::report {

std::string gpu_state_text(const GpuState& state);
std::string gpu_load_text(const GpuLoad& load);
nlohmann::json gpu_state_json(const GpuState& state);
nlohmann::json gpu_load_json(const GpuLoad& load);

}  // namespace brrr::report
