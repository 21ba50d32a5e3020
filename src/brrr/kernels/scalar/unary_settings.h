// Settings of functions that have some: which attributes of a call they are. As doubles, which is what attributes
// hold; kernels convert them to the type that they compute in.
#pragma once

#include <array>
#include <limits>

#include "brrr/graph/attrs.h"
#include "brrr/kernels/scalar/functor_traits.h"
#include "brrr/kernels/scalar/unary_functors.h"

namespace brrr::functors {

using Settings = std::array<double, 2>;

template <typename F>
Settings read_settings(const Attrs&) {
  static_assert(kSettings<F> == 0, "a functor with settings needs a read_settings of its own here");
  return {};
}

template <>
inline Settings read_settings<LeakyRelu>(const Attrs& attrs) {
  return {attrs.number("slope"), 0};
}

template <>
inline Settings read_settings<Clamp>(const Attrs& attrs) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return {attrs.has("low") ? attrs.number("low") : -infinity,
          attrs.has("high") ? attrs.number("high") : infinity};
}

}  // namespace brrr::functors
