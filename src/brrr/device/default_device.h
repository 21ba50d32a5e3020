// Where new tensors are made when the code that makes them does not say: the cpu, or what the innermost
// scope of this thread names. A model built inside DeviceScope(Device::null()) has shapes and a price,
// and takes no memory.
#pragma once

#include "brrr/device/device.h"

namespace brrr {

Device default_device();

class DeviceScope {
 public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Device outer_;
};

}  // namespace brrr
