// Errors of CUDA calls as words: the call, the answer, and what to do where brrr knows it.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "brrr/base/error.h"

namespace brrr::cuda {

// Throws Error unless the call went well. `call` is its text: "cudaMemcpyAsync(8192 B, host to device)".
template <typename... Parts>
void require(cudaError_t status, const Parts&... call) {
  if (status == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // taken: the next call starts clean
  fail("cuda: ", call..., " failed: ", cudaGetErrorName(status), ", ", cudaGetErrorString(status));
}

}  // namespace brrr::cuda
