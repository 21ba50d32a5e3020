// Functions of one operand that have settings, made from the attributes of a call.
#pragma once

#include "brrr/graph/attrs.h"
#include "brrr/ops/unary_functors.h"
#include "brrr/tensor/element.h"

namespace brrr::functors {

template <typename T>
LeakyRelu<T> make_leaky_relu(const Attrs& attrs) {
  return {static_cast<T>(attrs.number("slope"))};
}

template <typename T>
Clamp<T> make_clamp(const Attrs& attrs) {
  Clamp<T> clamp{std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()};
  if constexpr (std::floating_point<T>)
    clamp = {-std::numeric_limits<T>::infinity(), std::numeric_limits<T>::infinity()};
  if (attrs.has("low")) clamp.low = convert_element<T>(attrs.number("low"));
  if (attrs.has("high")) clamp.high = convert_element<T>(attrs.number("high"));
  return clamp;
}

}  // namespace brrr::functors
