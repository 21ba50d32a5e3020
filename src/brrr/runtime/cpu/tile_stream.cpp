#include "brrr/runtime/cpu/tile_stream.h"

#include <algorithm>

#include "brrr/kernels/cpu/elementwise/convert_cpu.h"

namespace brrr::runtime {

void TileStream::read(int64_t begin, int64_t count, ComputeType type, void* out) const {
  const ComputeType own = tiles_.captured_type();
  if (own == type) return tiles_.run_range(inputs_, outputs_, {begin, begin + count, nullptr, out});
  alignas(64) std::byte tile[kTileElements * sizeof(double)];
  for (int64_t done = 0; done < count; done += kTileElements) {
    const int64_t part = std::min(kTileElements, count - done);
    tiles_.run_range(inputs_, outputs_, {begin + done, begin + done + part, nullptr, tile});
    kernels::load_elements(natural_dtype(own), tile, 0, 1, part, type,
                           static_cast<std::byte*>(out) + done * compute_bytes(type));
  }
}

void TileStream::write(int64_t begin, int64_t count, ComputeType type, const void* values) const {
  const ComputeType own = tiles_.given_type();
  invariant(own == type, "a fused result comes in another compute type than its value has");
  tiles_.run_range(inputs_, outputs_, {begin, begin + count, values, nullptr});
}

}  // namespace brrr::runtime
