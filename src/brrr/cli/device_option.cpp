#include "brrr/cli/device_option.h"

#include <algorithm>
#include <filesystem>

#include "brrr/base/error.h"
#include "brrr/device/cuda/nvrtc.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/kernels/cuda/gemm/gemm_cuda.h"

namespace brrr::cli {
namespace {

// Products are timed once on this machine: later processes find the choices beside the generated kernels, in a file
// for each GPU, driver and library.
Device with_kept_choices(Device device) {
  const std::string folder = cuda::kernel_cache_folder();
  std::error_code unwritable;  // then every process times for itself
  if (folder.empty() || (std::filesystem::create_directories(folder, unwritable), unwritable))
    return device;
  std::string library = kernels::gemm_library_text(device.index);
  std::replace_if(
      library.begin(), library.end(), [](unsigned char c) { return !std::isalnum(c); }, '-');
  kernels::gemm_choices().keep_in(join_text(folder, "/products-", library, ".txt"));
  return device;
}

// "cuda:h200", and not "cuda:0".
bool names_table_entry(std::string_view name) {
  constexpr std::string_view kPrefix = "cuda:";
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
         std::isdigit(static_cast<unsigned char>(name[kPrefix.size()])) == 0;
}

}  // namespace

Device DeviceOption::device() const {
  if (name == "auto")
    return cuda::gpu_count() > 0 ? with_kept_choices(Device::cuda(0)) : Device::cpu();
  check(!names_table_entry(name), "--device ", name,
        ": a GPU of the hardware table can be planned ",
        "for (brrr train --dry-run, explain), and not run on; use cpu, cuda or cuda:0");
  const Device device = parse_device(name);
  check(device.has_data(), "--device null has no data; use cpu or cuda");
  if (!device.is_accelerator()) return device;
  check(cuda::is_built(), "--device ", name,
        ": this build has no CUDA; configure with BRRR_CUDA=ON");
  check(device.index < cuda::gpu_count(), "--device ", name, ": the driver shows ",
        cuda::gpu_count(), " GPUs; `brrr devices` lists what there is");
  return with_kept_choices(device);
}

compiler::Target DeviceOption::target() const {
  return names_table_entry(name) ? compiler::parse_target(name) : compiler::target_of(device());
}

void add_device_option(CLI::App& command, DeviceOption& option) {
  command
      .add_option("--device", option.name,
                  "cpu, cuda, cuda:1; auto: a GPU where there is one; to plan: cuda:h200, ...")
      ->capture_default_str();
}

}  // namespace brrr::cli
