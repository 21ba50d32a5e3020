#include "brrr/nn/decode_cache.h"

#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/view/update_slice.h"
#include "brrr/ops/view/views.h"

namespace brrr {

void DecodeCache::clear() const {
  for (const LayerCache& layer : layers) {
    for (const Tensor& x : layer) x.fill(0);
  }
}

Bytes DecodeCache::bytes() const {
  Bytes total;
  for (const LayerCache& layer : layers) {
    for (const Tensor& x : layer) total += x.bytes();
  }
  return total;
}

Tensor decode_positions(const DecodeInputs& decode, int64_t n) {
  const Tensor steps =
      arange(0, static_cast<double>(n), 1, {.dtype = DType::i64, .device = decode.starts.device()});
  return unsqueeze(decode.starts, 1) + steps;
}

Tensor append_to_cache(const Tensor& cached, const Tensor& x, const DecodeInputs& decode) {
  cached.copy_from(update_slice(cached, 2, x, decode.starts));
  return cached;
}

}  // namespace brrr
