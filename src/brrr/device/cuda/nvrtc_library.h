// The functions of libnvrtc that we call, found with dlopen.
#pragma once

#include <cstddef>
#include <string>

namespace brrr::cuda {

struct NvrtcLibrary {
  using Program = struct _nvrtcProgram*;
  int (*version)(int*, int*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*create)(Program*, const char* source, const char* name, int headers,
                const char* const* texts, const char* const* names) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int options, const char* const*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;

  std::string name;     // "NVRTC 13.0"
  std::string problem;  // why there is none; empty when all is well
  bool is_loaded() const { return problem.empty(); }
};

const NvrtcLibrary& nvrtc_library();
// Before the first use: there is no library, for this reason.
void refuse_nvrtc_library(std::string reason);

}  // namespace brrr::cuda
