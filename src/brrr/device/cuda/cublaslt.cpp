#if BRRR_HAS_CUDA

#include "brrr/device/cuda/cublaslt.h"

#include <dlfcn.h>

#include <array>
#include <mutex>

#include "brrr/base/error.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/device/device.h"

namespace brrr::cuda {
namespace {

struct Loaded {
  CublasLt functions{};
  bool found = false;
};

template <typename Function>
void look_up(void* library, const char* name, Function*& function, Loaded& loaded) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (!function) loaded.found = false;
}

Loaded load() {
  Loaded loaded;
  // The version that this was compiled against first: its structs are those of the header.
  const std::string current = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* library = dlopen(current.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {  // a toolkit that is not on the loader's path
    const std::string standard = "/usr/local/cuda/lib64/" + current;
    library = dlopen(standard.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) return loaded;
  loaded.found = true;
  CublasLt& f = loaded.functions;
  look_up(library, "cublasLtCreate", f.create, loaded);
  look_up(library, "cublasLtGetVersion", f.version, loaded);
  look_up(library, "cublasLtMatmul", f.matmul, loaded);
  look_up(library, "cublasLtMatmulDescCreate", f.desc_create, loaded);
  look_up(library, "cublasLtMatmulDescDestroy", f.desc_destroy, loaded);
  look_up(library, "cublasLtMatmulDescSetAttribute", f.desc_set, loaded);
  look_up(library, "cublasLtMatrixLayoutCreate", f.layout_create, loaded);
  look_up(library, "cublasLtMatrixLayoutDestroy", f.layout_destroy, loaded);
  look_up(library, "cublasLtMatrixLayoutSetAttribute", f.layout_set, loaded);
  look_up(library, "cublasLtMatmulPreferenceCreate", f.preference_create, loaded);
  look_up(library, "cublasLtMatmulPreferenceDestroy", f.preference_destroy, loaded);
  look_up(library, "cublasLtMatmulPreferenceSetAttribute", f.preference_set, loaded);
  look_up(library, "cublasLtMatmulAlgoGetHeuristic", f.heuristic, loaded);
  look_up(library, "cublasLtGetStatusString", f.status_string, loaded);
  return loaded;
}

const Loaded& loaded_once() {
  static const Loaded loaded = load();
  return loaded;
}

}  // namespace

const CublasLt* cublaslt() { return loaded_once().found ? &loaded_once().functions : nullptr; }
bool has_cublaslt() { return cublaslt() != nullptr; }

cublasLtHandle_t cublaslt_handle(int device) {
  static std::array<cublasLtHandle_t, kMaxCudaDevices> handles{};
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles[static_cast<size_t>(device)];
  if (!handle) {
    stream(device);  // makes the device current
    const cublasStatus_t status = cublaslt()->create(&handle);
    check(status == CUBLAS_STATUS_SUCCESS,
          "cuda: cublasLtCreate failed: ", cublaslt()->status_string(status));
  }
  return handle;
}

}  // namespace brrr::cuda

#else

#include "brrr/device/cuda/runtime.h"

namespace brrr::cuda {

bool has_cublaslt() { return false; }

}  // namespace brrr::cuda

#endif
