// NVIDIA's run-time compiler: from CUDA C++ text to machine code for one architecture, kept on disk. The
// library is looked for when it is first needed, so that a program starts without it; a GPU is not needed.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace brrr::cuda {

// Whether the compiler was found.
bool has_compiler();
// As if it had not been found, for this reason. To be said before anything else here is called.
void switch_compiler_off(std::string reason);
// "NVRTC 13.0", or why there is none.
const std::string& compiler_name();

struct SourceText {
  std::string name;  // for messages, and of the file that profilers show
  std::string text;
};
// Machine code of a source for "sm_80", "sm_90a", ...: from the memory of this process, from the cache on
// disk, or compiled now. Throws Error with the compiler's words. Threads may call it at once.
std::shared_ptr<const std::string> compile_source(const SourceText& source,
                                                  std::string_view architecture);

// What compile_source did so far.
struct CompilerCounts {
  int compiled = 0, from_disk = 0, from_memory = 0;
  double compile_seconds = 0;
};
CompilerCounts compiler_counts();

// Where machine code is kept: $XDG_CACHE_HOME/brrr/kernels, or ~/.cache/brrr/kernels; empty where neither
// variable is set, and then nothing is kept.
std::string kernel_cache_folder();

}  // namespace brrr::cuda
