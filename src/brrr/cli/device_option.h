// --device: where a command's tensors and programs live, or what it plans for.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "brrr/compiler/target.h"
#include "brrr/device/default_device.h"

namespace brrr::cli {

struct DeviceOption {
  std::string name = "auto";
  // Throws Error where the machine has no such device. "auto": a GPU where there is one, else the cpu.
  Device device() const;
  // The same, and also GPUs of the hardware table that are not here ("cuda:h200"): a program can be planned for them.
  compiler::Target target() const;
};
void add_device_option(CLI::App& command, DeviceOption& option);

}  // namespace brrr::cli
