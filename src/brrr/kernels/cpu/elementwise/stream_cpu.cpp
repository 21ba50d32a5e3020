#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/kernels/cpu/elementwise/stream_cpu.cpp"
#include "brrr/kernels/cpu/elementwise/stream_cpu.h"

#include <algorithm>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Streaming stores need aligned vectors; what lies before and behind them is copied as usual.
void stream_bytes(uint8_t* HWY_RESTRICT to, const uint8_t* HWY_RESTRICT from, int64_t bytes) {
  const hn::ScalableTag<uint8_t> tag;
  const auto width = static_cast<int64_t>(hn::Lanes(tag));
  const auto misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % 64);
  const int64_t head = std::min(bytes, misaligned == 0 ? 0 : 64 - misaligned);
  std::memcpy(to, from, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + width <= bytes; i += width) hn::Stream(hn::LoadU(tag, from + i), tag, to + i);
  std::memcpy(to + i, from + i, static_cast<size_t>(bytes - i));
}

}  // namespace brrr::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brrr::kernels {

HWY_EXPORT(stream_bytes);

void stream_copy(void* to, const void* from, int64_t bytes) {
  HWY_DYNAMIC_DISPATCH(stream_bytes)
  (static_cast<uint8_t*>(to), static_cast<const uint8_t*>(from), bytes);
}

void finish_stream() { hwy::FlushStream(); }

}  // namespace brrr::kernels
#endif
