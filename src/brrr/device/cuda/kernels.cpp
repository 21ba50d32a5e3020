// Code that was compiled at run time, and captured graphs. Driver functions are looked up by name in the
// driver that is there: nothing links libcuda, so the program starts on machines without one.
#include "brrr/device/cuda/runtime.h"

#if BRRR_HAS_CUDA

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <utility>

#include "brrr/device/cuda/check.h"

namespace brrr::cuda {
namespace {

template <typename Function>
Function* driver_function(const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  require(cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found),
          "cudaGetDriverEntryPointByVersion(", name, ")");
#else
  require(cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &found),
          "cudaGetDriverEntryPoint(", name, ")");
#endif
  check(found == cudaDriverEntryPointSuccess && address, "cuda: the driver has no ", name,
        "; brrr needs driver 525 (CUDA 12) or newer");
  return reinterpret_cast<Function*>(address);
}

// Declared by cuda.h, never linked: decltype alone uses them.
struct Driver {
  decltype(cuLibraryLoadData)* library_load_data =
      driver_function<decltype(cuLibraryLoadData)>("cuLibraryLoadData");
  decltype(cuLibraryGetKernel)* library_get_kernel =
      driver_function<decltype(cuLibraryGetKernel)>("cuLibraryGetKernel");
  decltype(cuKernelSetAttribute)* kernel_set_attribute =
      driver_function<decltype(cuKernelSetAttribute)>("cuKernelSetAttribute");
  decltype(cuKernelGetAttribute)* kernel_get_attribute =
      driver_function<decltype(cuKernelGetAttribute)>("cuKernelGetAttribute");
  decltype(cuLaunchKernel)* launch_kernel =
      driver_function<decltype(cuLaunchKernel)>("cuLaunchKernel");
  decltype(cuGetErrorString)* error_string =
      driver_function<decltype(cuGetErrorString)>("cuGetErrorString");
};
const Driver& driver() {
  static const Driver found;
  return found;
}

template <typename... Parts>
void require_driver(CUresult status, const Parts&... call) {
  if (status == CUDA_SUCCESS) [[likely]]
    return;
  const char* words = nullptr;
  driver().error_string(status, &words);
  fail("cuda: ", call..., " failed: ", words ? words : "unknown error", " (",
       static_cast<int>(status), ")");
}

std::string words_of(const Dim3& size) { return join_text(size.x, "x", size.y, "x", size.z); }

std::string words_of(std::span<void* const> arguments) {
  std::string text;
  for (const void* argument : arguments) {  // every parameter is at least a word where it matters
    text += join_text(text.empty() ? "" : " ", *static_cast<const uint32_t*>(argument));
  }
  return text;
}

}  // namespace

Library::Library(std::span<const std::byte> image) {
  stream(0);  // a context must be current
  CUlibrary library = nullptr;
  require_driver(
      driver().library_load_data(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
      "cuLibraryLoadData of ", image.size(), " bytes");
  library_ = library;
}

Kernel Library::kernel(const std::string& name) const {
  CUkernel kernel = nullptr;
  require_driver(
      driver().library_get_kernel(&kernel, static_cast<CUlibrary>(library_), name.c_str()),
      "cuLibraryGetKernel(", name, ")");
  return {kernel, name};
}

int Kernel::registers() const {
  int count = 0;
  require_driver(driver().kernel_get_attribute(&count, CU_FUNC_ATTRIBUTE_NUM_REGS,
                                               static_cast<CUkernel>(handle_), 0),
                 "cuKernelGetAttribute(", name_, ")");
  return count;
}

void Kernel::allow_shared_bytes(int device, int bytes) const {
  require_driver(driver().kernel_set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                               bytes, static_cast<CUkernel>(handle_), device),
                 "cuKernelSetAttribute(", name_, ", ", bytes, " bytes of shared memory)");
}

void Kernel::launch(const Launch& sizes, Stream stream, std::span<void* const> arguments) const {
  const CUresult status = driver().launch_kernel(
      reinterpret_cast<CUfunction>(handle_), sizes.grid.x, sizes.grid.y, sizes.grid.z,
      sizes.block.x, sizes.block.y, sizes.block.z, sizes.shared_bytes, stream,
      const_cast<void**>(arguments.data()), nullptr);
  if (status == CUDA_SUCCESS) [[likely]]
    return;
  require_driver(status, "launch of ", name_, " with grid ", words_of(sizes.grid), ", block ",
                 words_of(sizes.block), ", ", sizes.shared_bytes,
                 " B of shared memory and arguments (first words) ", words_of(arguments));
}

// ---- Graphs.

Graph::~Graph() {
  if (exec_) cudaGraphExecDestroy(exec_);
}
Graph::Graph(Graph&& other) noexcept
    : exec_(std::exchange(other.exec_, nullptr)), nodes_(other.nodes_) {}
Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(exec_, other.exec_);
  std::swap(nodes_, other.nodes_);
  return *this;
}
void Graph::launch(Stream stream) const {
  require(cudaGraphLaunch(exec_, stream), "cudaGraphLaunch of ", nodes_, " nodes");
}

Capture::Capture(Stream stream) : stream_(stream) {
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
}

Capture::~Capture() {
  if (!open_) return;
  cudaGraph_t dropped = nullptr;
  cudaStreamEndCapture(stream_, &dropped);
  if (dropped) cudaGraphDestroy(dropped);
  cudaGetLastError();
}

Graph Capture::finish() {
  cudaGraph_t recorded = nullptr;
  open_ = false;
  require(cudaStreamEndCapture(stream_, &recorded), "cudaStreamEndCapture");
  size_t nodes = 0;
  Graph graph;
  const cudaError_t counted = cudaGraphGetNodes(recorded, nullptr, &nodes);
  const cudaError_t made = cudaGraphInstantiate(&graph.exec_, recorded, 0);
  cudaGraphDestroy(recorded);
  require(counted, "cudaGraphGetNodes");
  require(made, "cudaGraphInstantiate of ", nodes, " nodes");
  graph.nodes_ = static_cast<int64_t>(nodes);
  return graph;
}

bool is_capturing(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  require(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status == cudaStreamCaptureStatusActive;
}

}  // namespace brrr::cuda

#endif
