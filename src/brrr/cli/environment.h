// What the environment asks of the program, read once. Folders below cli/ are told by their options and read none of it.
//   BRRR_CUDA_WAIT=1   every CUDA kernel is waited for, so that an error names its kernel
//   BRRR_NVRTC=off     no kernels are generated, as on a machine without NVRTC
//   COLUMNS            the width of tables and progress lines
//   XDG_CACHE_HOME     the user's cache; HOME/.cache where it is not set
#pragma once

#include <string>

namespace brrr::cli {

void read_environment();

// Where brrr keeps what it measured: $XDG_CACHE_HOME/brrr or ~/.cache/brrr; empty where neither variable is set.
std::string cache_folder();

}  // namespace brrr::cli
