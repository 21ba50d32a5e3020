#include "brrr/device/cuda/nvrtc_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "brrr/base/error.h"

namespace brrr::cuda {
namespace {

// By name where the loader knows it, then where NVIDIA's installer and environment variables put it.
std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  const std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  for (const std::string& name : names) paths.push_back(name);
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_PATH", "CUDA_HOME"}) {
    if (const char* root = std::getenv(variable)) folders.emplace_back(root);
  }
  folders.emplace_back("/usr/local/cuda");
  for (const std::string& folder : folders) {
    for (const std::string& name : names) paths.push_back(join_text(folder, "/lib64/", name));
  }
  return paths;
}

std::string& refusal() {
  static std::string reason;
  return reason;
}

void* open_library() {
  for (const std::string& path : candidates()) {
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

template <typename Function>
void find(void* handle, const char* symbol, Function& function, std::string& problem) {
  void* const address = dlsym(handle, symbol);
  if (!address) problem = join_text("libnvrtc has no function ", symbol);
  std::memcpy(static_cast<void*>(&function), static_cast<const void*>(&address), sizeof(function));
}

NvrtcLibrary load() {
  NvrtcLibrary library;
  library.problem = refusal();
  if (!library.is_loaded()) return library;
  void* const handle = open_library();
  if (!handle) {
    library.problem =
        "libnvrtc.so was not found by the loader, under $CUDA_PATH/lib64 or /usr/local/cuda/lib64";
    return library;
  }
  find(handle, "nvrtcVersion", library.version, library.problem);
  find(handle, "nvrtcGetErrorString", library.error_text, library.problem);
  find(handle, "nvrtcCreateProgram", library.create, library.problem);
  find(handle, "nvrtcDestroyProgram", library.destroy, library.problem);
  find(handle, "nvrtcCompileProgram", library.compile, library.problem);
  find(handle, "nvrtcGetProgramLogSize", library.log_size, library.problem);
  find(handle, "nvrtcGetProgramLog", library.log, library.problem);
  find(handle, "nvrtcGetCUBINSize", library.cubin_size, library.problem);
  find(handle, "nvrtcGetCUBIN", library.cubin, library.problem);
  if (!library.is_loaded()) return library;
  int major = 0, minor = 0;
  library.version(&major, &minor);
  library.name = join_text("NVRTC ", major, ".", minor);
  return library;
}

}  // namespace

const NvrtcLibrary& nvrtc_library() {
  static const NvrtcLibrary library = load();
  return library;
}

void refuse_nvrtc_library(std::string reason) { refusal() = std::move(reason); }

}  // namespace brrr::cuda
