# rtc_headers.cpp: the headers that generated GPU kernels include, as text inside the library. Kernels are
# compiled when a program is made, on machines that have no copy of the source tree.
set(brrr_rtc_headers
  brrr/base/host_device.h
  brrr/base/scalar_blocks.h
  brrr/base/scalar_exp_log.h
  brrr/base/scalar_erf.h
  brrr/base/scalar_sin_cos.h
  brrr/base/scalar_math.h
  brrr/base/float_formats.h
  brrr/tensor/element.h
  brrr/kernels/scalar/wrap.h
  brrr/kernels/scalar/unary_functors.h
  brrr/kernels/scalar/binary_functors.h
  brrr/kernels/scalar/activation_functors.h
  brrr/kernels/cuda/codegen/element_access.h
  brrr/kernels/cuda/codegen/block_reduce.h
  brrr/device/cuda/rtc_std.h)

function(brrr_add_rtc_headers target)
  brrr_text_rows(entries "" ${brrr_rtc_headers})
  set(source "${PROJECT_BINARY_DIR}/rtc_headers.cpp")
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT [[
// Made by cmake/BrrrRtcHeaders.cmake.
#include "brrr/device/cuda/rtc_headers.h"

namespace brrr::cuda {
namespace {
constexpr RtcHeader kHeaders[] = {
@entries@};
}  // namespace

std::span<const RtcHeader> rtc_headers() { return kHeaders; }

}  // namespace brrr::cuda
]])
  target_sources(${target} PRIVATE "${source}")
endfunction()
