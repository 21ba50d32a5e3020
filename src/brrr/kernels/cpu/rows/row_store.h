// How a row kernel writes its result.
#pragma once

#include <cstdint>

namespace brrr::kernels {

enum class RowStore : uint8_t {
  cached,   // the row, or one that it was copied from, is read again soon
  streamed  // past the caches (kernels/cpu/elementwise/stream_cpu.h)
};

}  // namespace brrr::kernels
