// The headers that generated kernels may include, by name; cmake/BrrrRtcHeaders.cmake puts them in.
#pragma once

#include <span>

namespace brrr::cuda {

struct RtcHeader {
  const char *name, *text;
};
std::span<const RtcHeader> rtc_headers();

}  // namespace brrr::cuda
