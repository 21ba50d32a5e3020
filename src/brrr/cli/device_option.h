// --device: where a command's tensors and programs live.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "brrr/device/default_device.h"

namespace brrr::cli {

struct DeviceOption {
  std::string name = "auto";
  // Throws Error where the machine has no such device. "auto": a GPU where there is one, else the cpu.
  Device device() const;
};
void add_device_option(CLI::App& command, DeviceOption& option);

}  // namespace brrr::cli
