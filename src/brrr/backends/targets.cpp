// Targets by name and by device.
#include <charconv>

#include "brrr/backends/backends.h"
#include "brrr/base/error.h"
#include "brrr/device/cuda/nvrtc.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/device/gpu_info.h"
#include "brrr/hardware/hardware.h"

namespace brrr::compiler {
namespace {

constexpr std::string_view kCuda = "cuda";

// A GPU of the table. What the table does not know of it, no kernel can be chosen by.
Target table_target(const hardware::GpuSpec& gpu) {
  const hardware::ComputeCapability capability =
      gpu.compute_capability.value_or(hardware::ComputeCapability{});
  check(capability.major > 0 && gpu.multiprocessors > 0 && gpu.shared_per_block.value() > 0,
        "cuda:", gpu.name, ": the hardware table has no compute capability, SM count or shared ",
        "memory for the ", gpu.title, ", so no program can be compiled for it; ",
        "`brrr napkin gpu` lists the devices");
  return {.name = join_text(kCuda, ":", gpu.name),
          .backend = &backends::cuda_backend(),
          .chip = {.major = capability.major,
                   .minor = capability.minor,
                   .sm_count = gpu.multiprocessors,
                   .l2_bytes = gpu.l2.value(),
                   .shared_bytes_per_block = gpu.shared_per_block.value()},
          .gpu = gpu.name,
          .index = std::nullopt};
}

// Its name in the table, by what the driver calls it; empty where the table lacks it.
std::string table_name(int index) {
  const GpuList gpus = list_gpus();
  if (static_cast<size_t>(index) >= gpus.gpus.size()) return {};
  const hardware::GpuSpec* const known =
      hardware::find_by_driver_name(gpus.gpus[static_cast<size_t>(index)].name);
  return known ? known->name : std::string();
}

Target device_target(int index) {
  check(index < cuda::gpu_count(), "cuda:", index, ": this machine has ", cuda::gpu_count(),
        " GPUs that CUDA can use; name one of the hardware table to plan for it, as cuda:h200");
  return {.name = join_text(kCuda, ":", index),
          .backend = &backends::cuda_backend(),
          .chip = cuda::device_facts(index),
          .gpu = table_name(index),
          .index = index,
          .generates = cuda::has_compiler()};
}

}  // namespace

Device Target::device() const {
  check(!is_planned_only(*this), "a program for ", name,
        " can be planned here and not run: this machine has no such device");
  return index ? Device::cuda(*index) : Device::cpu();
}

const Target& cpu_target() {
  static const Target target{
      .name = "cpu", .backend = &backends::cpu_backend(), .index = std::nullopt};
  return target;
}

Target target_of(Device device) {
  return device.is_accelerator() ? device_target(device.index) : cpu_target();
}

Target parse_target(std::string_view text) {
  if (text == "cpu") return cpu_target();
  if (text == kCuda) return device_target(0);
  check(text.starts_with("cuda:"), "\"", text,
        "\" is not a target; use cpu, cuda, cuda:0 or one of the hardware table such as cuda:h200");
  const std::string_view name = text.substr(kCuda.size() + 1);
  int index = 0;
  const auto [stop, failure] = std::from_chars(name.begin(), name.end(), index);
  if (failure == std::errc() && stop == name.end()) return device_target(index);
  return table_target(hardware::find_gpu(name));
}

bool is_planned_only(const Target& target) {
  return target.backend != &backends::cpu_backend() && !target.index;
}

std::vector<const Backend*> known_backends() {
  return {&backends::cuda_backend(), &backends::cpu_backend()};
}

}  // namespace brrr::compiler
