#include "brrr/cli/environment.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "brrr/base/error.h"
#include "brrr/device/cuda/nvrtc.h"
#include "brrr/graph/cuda_launch.h"
#include "brrr/report/terminal.h"

namespace brrr::cli {
namespace {

std::string_view variable(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing in the program sets the environment
  const char* value = std::getenv(name);
  return value ? value : std::string_view();
}

}  // namespace

void read_environment() {
  wait_for_cuda_kernels(variable("BRRR_CUDA_WAIT") == "1");
  if (variable("BRRR_NVRTC") == "off") cuda::switch_compiler_off("BRRR_NVRTC=off");
  // A text that is not a number reads as 0, and 0 columns are not believed.
  const std::string columns(variable("COLUMNS"));
  report::set_terminal_columns(std::strtol(columns.c_str(), nullptr, 10));
}

std::string cache_folder() {
  if (const std::string_view cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return join_text(cache, "/brrr");
  const std::string_view home = variable("HOME");
  return home.empty() ? "" : join_text(home, "/.cache/brrr");
}

}  // namespace brrr::cli
