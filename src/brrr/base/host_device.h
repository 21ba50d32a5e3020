// BRRR_HD marks a function that kernels may call too: one definition of the arithmetic for CPU and
// GPU. It is empty outside nvcc, so these headers need no CUDA toolkit.
#pragma once

#if defined(__CUDACC__)
#define BRRR_HD __host__ __device__
#else
#define BRRR_HD
#endif
