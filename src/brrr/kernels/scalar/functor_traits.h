// What a functor can do, asked of the functor: a struct with `static T of(T x, ...)`, as in kernels/scalar/*_functors.h. It
// computes in the types that `of` takes and gives back.
#pragma once

#include <concepts>

namespace brrr::functors {

template <typename F>
constexpr int settings_of() {
  if constexpr (requires { F::settings; })
    return F::settings;
  else
    return 0;
}

// Parameters after the operands that are the same for all elements.
template <typename F>
inline constexpr int kSettings = settings_of<F>();

template <typename F, typename T>
constexpr int parameters_of() {
  if constexpr (requires(T x) {
                  { F::of(x) } -> std::same_as<T>;
                })
    return 1;
  else if constexpr (requires(T x) {
                       { F::of(x, x) } -> std::same_as<T>;
                     })
    return 2;
  else if constexpr (requires(T x) {
                       { F::of(x, x, x) } -> std::same_as<T>;
                     })
    return 3;
  else
    return 0;
}

template <typename F, typename T>
concept ComputesIn = (parameters_of<F, T>() != 0);

// Operands of a functor that computes in T.
template <typename F, typename T>
requires ComputesIn<F, T>
inline constexpr int kOperands = parameters_of<F, T>() - kSettings<F>;

}  // namespace brrr::functors
