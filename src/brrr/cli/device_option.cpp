#include "brrr/cli/device_option.h"

#include "brrr/base/error.h"
#include "brrr/device/cuda/runtime.h"

namespace brrr::cli {

Device DeviceOption::device() const {
  if (name == "auto") return cuda::gpu_count() > 0 ? Device::cuda(0) : Device::cpu();
  const Device device = parse_device(name);
  check(device.has_data(), "--device null has no data; use cpu or cuda");
  if (device.kind != DeviceKind::cuda) return device;
  check(cuda::is_built(), "--device ", name,
        ": this build has no CUDA; configure with BRRR_CUDA=ON");
  check(device.index < cuda::gpu_count(), "--device ", name, ": the driver shows ",
        cuda::gpu_count(), " GPUs; `brrr devices` lists what there is");
  return device;
}

void add_device_option(CLI::App& command, DeviceOption& option) {
  command
      .add_option("--device", option.name, "cpu, cuda, cuda:1, ...; auto: a GPU where there is one")
      ->capture_default_str();
}

}  // namespace brrr::cli
