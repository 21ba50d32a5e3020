// What a profile of a step on a GPU has besides kernels: gaps between them, copies between host and device, and which
// products run on tensor cores.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "brrr/plan/profile.h"

namespace brrr::report {

// Both of a profile that has a `gpu`.
std::string gpu_step_text(const plan::Profile& profile);
nlohmann::json gpu_step_json(const plan::Profile& profile);

}  // namespace brrr::report
