// What brrr asks of a GPU: a stream, copies, waiting, kernels out of compiled code, captured graphs, times.
// Plain C++ without CUDA's headers, so that every file may include it; in a build without CUDA each of
// these functions throws an Error that says so.
//
// All work of a device goes to one stream and runs in order. So memory that is released can be used again
// by what is enqueued later, and nothing but copies to the host ever has to wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/device/chip.h"

struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

namespace brrr::cuda {

using Stream = ::CUstream_st*;

bool is_built();      // whether this build has CUDA
int gpu_count();      // 0 without a GPU or a driver
bool has_cublaslt();  // found when first asked for

// The stream on which brrr's work of this device runs; makes the device current for this thread.
Stream stream(int device = 0);
int current_device();  // that of the last call of stream() on this thread

// Enqueued. The driver stages pageable host memory, so `from` may change as soon as copy_to_device returns;
// pinned memory (PinnedBytes) is read later and must stay. What copy_to_host fills is valid after wait().
void copy_to_device(void* to, const void* from, size_t bytes, Stream stream);
void copy_to_host(void* to, const void* from, size_t bytes, Stream stream);
void copy_on_device(void* to, const void* from, size_t bytes, Stream stream);
void fill_zero(void* to, size_t bytes, Stream stream);
void fill_bytes(void* to, int value, size_t bytes, Stream stream);
void wait(Stream stream);

// Device memory, 256-byte aligned. Released blocks are kept and handed out again (blocks.cpp).
void* allocate_bytes(int device, size_t bytes);
void release_bytes(int device, void* memory) noexcept;
struct MemoryState {
  int64_t held_by_brrr;    // taken from the driver: in use or kept for reuse
  int64_t kept_for_reuse;  // part of it that nobody uses now
  int64_t free, total;     // as the driver says, other processes counted
};
MemoryState memory_state(int device);
void return_kept_blocks(int device);  // to the driver

// Host memory that the GPU reads and writes without a detour.
class PinnedBytes {
 public:
  PinnedBytes() = default;
  explicit PinnedBytes(size_t bytes);
  ~PinnedBytes();
  PinnedBytes(PinnedBytes&& other) noexcept;
  PinnedBytes& operator=(PinnedBytes&& other) noexcept;
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// ---- Kernels out of compiled code.

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};
struct Launch {
  Dim3 grid, block;
  unsigned shared_bytes = 0;
};
class Kernel;  // belongs to its Library

// A cubin (or PTX) that was loaded. Stays loaded as long as the program runs: graphs may hold its kernels.
class Library {
 public:
  explicit Library(std::span<const std::byte> image);
  Kernel kernel(const std::string& name) const;

 private:
  void* library_ = nullptr;
};

class Kernel {
 public:
  Kernel() = default;
  const std::string& name() const { return name_; }
  int registers() const;
  void allow_shared_bytes(int device, int bytes) const;  // above 48 KiB
  // `arguments` are addresses of the kernel's parameters. Throws Error with name, sizes and arguments.
  void launch(const Launch& sizes, Stream stream, std::span<void* const> arguments) const;

 private:
  friend class Library;
  Kernel(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* handle_ = nullptr;
  std::string name_;
};

// ---- Captured work.

// A run of calls that was recorded and can be launched again at the price of one.
class Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;
  bool defined() const { return exec_ != nullptr; }
  int64_t nodes() const { return nodes_; }
  void launch(Stream stream) const;

 private:
  friend class Capture;
  CUgraphExec_st* exec_ = nullptr;
  int64_t nodes_ = 0;
};

// Capture recording(stream);  ... work on the stream is recorded, not run ...  Graph g = recording.finish();
// Destroyed without finish(), as by an exception, it drops what was recorded.
class Capture {
 public:
  explicit Capture(Stream stream);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  Graph finish();

 private:
  Stream stream_;
  bool open_ = true;
};
bool is_capturing(Stream stream);

// ---- Times.

class Event {
 public:
  Event();
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  void record(Stream stream);
  void wait() const;
  bool is_done() const;

 private:
  friend double seconds_between(const Event& begin, const Event& end);
  CUevent_st* event_ = nullptr;
};
double seconds_between(const Event& begin, const Event& end);  // both must be done

// ---- Facts of a device that kernels are chosen by.

struct DeviceFacts : Chip {
  int driver_version = 0, runtime_version = 0;
};
const DeviceFacts& device_facts(int device);

// Throws Error when the last launch of a kernel built into brrr failed; `what` names it.
void check_launch(std::string_view what);

}  // namespace brrr::cuda
