// Tests of a GPU say "skipped", and why, where there is none.
#pragma once

#include <gtest/gtest.h>

#include "brrr/device/cuda/runtime.h"
#include "brrr/device/gpu_info.h"

#define BRRR_NEEDS_GPU() \
  if (brrr::cuda::gpu_count() == 0) GTEST_SKIP() << "no GPU: " << brrr::list_gpus().reason
