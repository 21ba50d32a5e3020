#include "brrr/optim/stochastic_round.h"

#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/random/random.h"

namespace brrr {

Tensor round_by_chance(const Tensor& x, const Tensor& step, int64_t site) {
  // The key (seed, stream, draw) = (site, "rounding", step), made inside the program.
  const Tensor place = arange(0, 3, 1, {.dtype = DType::i64, .device = x.device()});
  const Tensor key = where(
      equal(place, 0), site,
      where(equal(place, 1), static_cast<int64_t>(stream_id("rounding")), cast(step, DType::i64)));
  const Tensor chance = uniform(x.shape(), key, {}, {.dtype = DType::f32, .device = x.device()});

  // A step of 1.25 * 2^-8 of the value itself is between 0.6 and 1.25 of a last bit: rounded to nearest,
  // it arrives at the neighbour on the other side of x.
  constexpr double kAboutOneBit = 1.25 / 256;
  const Tensor near = cast(cast(x, DType::bf16), DType::f32);
  const Tensor beyond = x - near;
  const Tensor neighbour =
      cast(cast(near + sign(beyond) * abs(near) * kAboutOneBit, DType::bf16), DType::f32);
  // Where x is a bf16 already this is 0 / 0 or 0, and no chance is below that.
  const Tensor share = abs(beyond) / abs(neighbour - near);
  return cast(where(less(chance, share), neighbour, near), DType::bf16);
}

}  // namespace brrr
