#include "brrr/device/default_device.h"

#include <utility>

namespace brrr {
namespace {
constinit thread_local Device innermost;
}  // namespace

Device default_device() { return innermost; }

DeviceScope::DeviceScope(Device device) : outer_(std::exchange(innermost, device)) {}
DeviceScope::~DeviceScope() { innermost = outer_; }

}  // namespace brrr
