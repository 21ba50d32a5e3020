// For tests that need CUDA kernels to be compiled in; a GPU is another matter (tests/cuda/gpu.h).
#pragma once

#include <gtest/gtest.h>

#if BRRR_HAS_CUDA
#define BRRR_NEEDS_CUDA_BUILD() static_cast<void>(0)
#else
#define BRRR_NEEDS_CUDA_BUILD() GTEST_SKIP() << "this build has no CUDA kernels"
#endif
