// dx = dy f'(x) of activations, element by element, for every backend; see unary_functors.h.
#pragma once

#include "brrr/base/scalar_math.h"

namespace brrr::functors {

struct GeluBackward {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x, T dy) {
    return dy * math::gelu_erf_grad(x);
  }
};
struct GeluTanhBackward {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x, T dy) {
    return dy * math::gelu_tanh_grad(x);
  }
};
struct SiluBackward {
  template <typename T>
  [[gnu::always_inline]] BRRR_HD static T of(T x, T dy) {
    return dy * math::silu_grad(x);
  }
};

}  // namespace brrr::functors
