// Streams, copies and facts of a device; kernels.cpp has loaded code and graphs, blocks.cpp memory.
#include "brrr/device/cuda/runtime.h"

#include "brrr/base/error.h"
#include "brrr/device/cuda/slices.h"

#if BRRR_HAS_CUDA

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "brrr/base/units.h"
#include "brrr/device/cuda/check.h"
#include "brrr/device/cuda/fault.h"
#include "brrr/device/device.h"

namespace brrr::cuda {
namespace {

Bytes as_bytes(size_t bytes) { return Bytes(static_cast<int64_t>(bytes)); }

struct DeviceState {
  std::once_flag once;
  Stream stream = nullptr;
  DeviceFacts facts{};
  Fault* fault = nullptr;
};

DeviceFacts read_facts(int device) {
  const auto attribute = [device](cudaDeviceAttr name) {
    int value = 0;
    require(cudaDeviceGetAttribute(&value, name, device), "cudaDeviceGetAttribute");
    return value;
  };
  DeviceFacts facts{{.major = attribute(cudaDevAttrComputeCapabilityMajor),
                     .minor = attribute(cudaDevAttrComputeCapabilityMinor),
                     .sm_count = attribute(cudaDevAttrMultiProcessorCount),
                     .l2_bytes = attribute(cudaDevAttrL2CacheSize),
                     .shared_bytes_per_block = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)}};
  require(cudaDriverGetVersion(&facts.driver_version), "cudaDriverGetVersion");
  require(cudaRuntimeGetVersion(&facts.runtime_version), "cudaRuntimeGetVersion");
  return facts;
}

std::array<DeviceState, kMaxCudaDevices> states;

DeviceState& state_of(int device) {
  check(
      device >= 0 && device < gpu_count(), "device cuda:", device, " is not there: ",
      gpu_count() == 0 ? "this machine has no GPU that CUDA can use" : "the machine has fewer GPUs",
      "; `brrr devices` lists what there is");
  DeviceState& state = states[static_cast<size_t>(device)];
  std::call_once(state.once, [&] {
    require(cudaSetDevice(device), "cudaSetDevice(", device, ")");
    // Not the legacy stream, which would wait for every other one and cannot be captured.
    // Every thread that the GPU can hold has a stack, 1 KiB by default: a quarter of a GiB on an H200. No
    // kernel here calls what the compiler cannot see through, and those that spill say how much.
    constexpr size_t kStackBytes = 128;
    require(cudaDeviceSetLimit(cudaLimitStackSize, kStackBytes), "cudaDeviceSetLimit(stack, ",
            as_bytes(kStackBytes), ")");
    require(cudaStreamCreateWithFlags(&state.stream, cudaStreamNonBlocking),
            "cudaStreamCreateWithFlags");
    state.facts = read_facts(device);
    void* fault = nullptr;
    require(cudaHostAlloc(&fault, sizeof(Fault), cudaHostAllocMapped | cudaHostAllocPortable),
            "cudaHostAlloc");
    state.fault = new (fault) Fault{};
  });
  return state;
}

// Faults of all devices that are in use: wait() has a stream and not a device.
void throw_faults() {
  for (int device = 0; device < gpu_count(); ++device) {
    Fault* const fault = states[static_cast<size_t>(device)].fault;
    if (!fault || fault->name == 0) continue;
    const Fault seen = *fault;
    *fault = {};
    fail(std::string_view(reinterpret_cast<const char*>(seen.name),
                          static_cast<size_t>(seen.name_bytes)),
         ": index ", seen.value, " is out of range on cuda:", device, "; use 0 <= index < ",
         seen.size);
  }
}

}  // namespace

Fault* fault_of(int device) { return state_of(device).fault; }

bool is_built() { return true; }

int gpu_count() {
  static const int count = [] {
    int found = 0;
    if (cudaGetDeviceCount(&found) != cudaSuccess) {
      cudaGetLastError();
      return 0;
    }
    return std::min(found, kMaxCudaDevices);
  }();
  return count;
}

namespace {
constinit thread_local int current = -1;
}  // namespace

int current_device() { return std::max(0, current); }

Stream stream(int device) {
  DeviceState& state = state_of(device);
  if (current != device) {
    require(cudaSetDevice(device), "cudaSetDevice(", device, ")");
    current = device;
  }
  return state.stream;
}

const DeviceFacts& device_facts(int device) { return state_of(device).facts; }

void copy_to_device(void* to, const void* from, size_t bytes, Stream stream) {
  if (bytes == 0) return;
  // The driver stages pageable memory in pinned blocks of its own and returns once it has read `from`.
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync(",
          as_bytes(bytes), ", host to device)");
}

void copy_to_host(void* to, const void* from, size_t bytes, Stream stream) {
  if (bytes == 0) return;
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync(",
          as_bytes(bytes), ", device to host)");
}

void copy_on_device(void* to, const void* from, size_t bytes, Stream stream) {
  if (bytes == 0) return;
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync(",
          as_bytes(bytes), ", on the device)");
}

void fill_bytes(void* to, int value, size_t bytes, Stream stream) {
  if (bytes == 0) return;
  require(cudaMemsetAsync(to, value, bytes, stream), "cudaMemsetAsync(", as_bytes(bytes), ")");
}
void fill_zero(void* to, size_t bytes, Stream stream) { fill_bytes(to, 0, bytes, stream); }

void wait(Stream stream) {
  require(cudaStreamSynchronize(stream),
          "a kernel or copy enqueued before (BRRR_CUDA_WAIT=1 tells which), seen by wait(),");
  throw_faults();
}

void check_launch(std::string_view what) { require(cudaPeekAtLastError(), "launch of ", what); }

PinnedBytes::PinnedBytes(size_t bytes) : size_(bytes) {
  void* memory = nullptr;
  if (bytes > 0) require(cudaMallocHost(&memory, bytes), "cudaMallocHost(", as_bytes(bytes), ")");
  data_ = static_cast<std::byte*>(memory);
}
PinnedBytes::~PinnedBytes() {
  if (data_) cudaFreeHost(data_);
}
PinnedBytes::PinnedBytes(PinnedBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
PinnedBytes& PinnedBytes::operator=(PinnedBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Event::Event() { require(cudaEventCreate(&event_), "cudaEventCreate"); }
Event::~Event() {
  if (event_) cudaEventDestroy(event_);
}
Event::Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
Event& Event::operator=(Event&& other) noexcept {
  std::swap(event_, other.event_);
  return *this;
}
void Event::record(Stream stream) { require(cudaEventRecord(event_, stream), "cudaEventRecord"); }
void Event::wait() const {
  require(cudaEventSynchronize(event_),
          "work before an event (BRRR_CUDA_WAIT=1 tells which), seen by Event::wait(),");
  throw_faults();
}
bool Event::is_done() const {
  const cudaError_t status = cudaEventQuery(event_);
  if (status == cudaErrorNotReady) return false;
  require(status, "cudaEventQuery");
  return true;
}
double seconds_between(const Event& begin, const Event& end) {
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, begin.event_, end.event_), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace brrr::cuda

#else

namespace brrr::cuda {
namespace {
[[noreturn]] void fail_not_built() {
  fail("this build has no CUDA; configure with -DBRRR_CUDA=ON, or use the cpu");
}
}  // namespace

bool is_built() { return false; }
int gpu_count() { return 0; }
Stream stream(int) { fail_not_built(); }
int current_device() { return 0; }
const DeviceFacts& device_facts(int) { fail_not_built(); }
void copy_to_device(void*, const void*, size_t, Stream) { fail_not_built(); }
void copy_to_host(void*, const void*, size_t, Stream) { fail_not_built(); }
void copy_on_device(void*, const void*, size_t, Stream) { fail_not_built(); }
void fill_bytes(void*, int, size_t, Stream) { fail_not_built(); }
void fill_zero(void*, size_t, Stream) { fail_not_built(); }
void wait(Stream) { fail_not_built(); }
void take_slices(std::span<const Slice>, const int64_t*, Stream) { fail_not_built(); }
void advance(int64_t*, Stream) { fail_not_built(); }
void check_launch(std::string_view) { fail_not_built(); }
void* allocate_bytes(int, size_t) { fail_not_built(); }
void release_bytes(int, void*) noexcept {}
MemoryState memory_state(int) { fail_not_built(); }
void return_kept_blocks(int) { fail_not_built(); }
PinnedBytes::PinnedBytes(size_t) { fail_not_built(); }
PinnedBytes::~PinnedBytes() = default;
PinnedBytes::PinnedBytes(PinnedBytes&&) noexcept = default;
PinnedBytes& PinnedBytes::operator=(PinnedBytes&&) noexcept = default;
Event::Event() { fail_not_built(); }
Event::~Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;
void Event::record(Stream) { fail_not_built(); }
void Event::wait() const { fail_not_built(); }
bool Event::is_done() const { fail_not_built(); }
double seconds_between(const Event&, const Event&) { fail_not_built(); }
Library::Library(std::span<const std::byte>) { fail_not_built(); }
Kernel Library::kernel(const std::string&) const { fail_not_built(); }
int Kernel::registers() const { fail_not_built(); }
void Kernel::allow_shared_bytes(int, int) const { fail_not_built(); }
void Kernel::launch(const Launch&, Stream, std::span<void* const>) const { fail_not_built(); }
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
void Graph::launch(Stream) const { fail_not_built(); }
Capture::Capture(Stream) : stream_(nullptr) { fail_not_built(); }
Capture::~Capture() = default;
Graph Capture::finish() { fail_not_built(); }
bool is_capturing(Stream) { fail_not_built(); }

}  // namespace brrr::cuda

#endif
