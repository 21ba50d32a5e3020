// Seconds of work on a GPU by its own clock: several calls between two events, medians over rounds.
#pragma once

#include <functional>

#include "brrr/device/cuda/runtime.h"

namespace brrr::cli {

double gpu_seconds(cuda::Stream stream, int rounds, const std::function<void()>& work);

}  // namespace brrr::cli
