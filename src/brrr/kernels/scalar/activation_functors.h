// dx = dy f'(x) of activations, element by element, for every backend; see unary_functors.h.
#pragma once

#include "brrr/base/scalar_math.h"

namespace brrr::functors {

struct GeluBackward {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x, T dy) {
    return dy * math::gelu_erf_grad(x);
  }
};
struct GeluTanhBackward {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x, T dy) {
    return dy * math::gelu_tanh_grad(x);
  }
};
struct SiluBackward {
  template <math::Real T>
  [[gnu::always_inline]] BRRR_HD static T of(T x, T dy) {
    return dy * math::silu_grad(x);
  }
};

}  // namespace brrr::functors

// The table of these; see unary_functors.h.
#define BRRR_ACTIVATION_GRADS(ROW)       \
  ROW(gelu, GeluBackward, none)          \
  ROW(gelu_tanh, GeluTanhBackward, none) \
  ROW(silu, SiluBackward, none)
