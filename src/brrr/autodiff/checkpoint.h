// checkpoint(fn, x...): calls fn, and does not keep what fn computes on the way for the backward pass;
// fn runs again there, from its inputs.
//
//   Tensor y = checkpoint([&](const Tensor& x) { return block(x); }, x);
//
// Random streams give the second run the keys of the first. Tensors that fn captures get their
// gradients like its arguments. What fn does must depend on nothing else that changes in between.
// Gradients have the same bits as without, except where a value is used inside and outside of fn: then
// the sum of its gradients is taken in another order.
// In a compiled function it marks a segment (graph.h); the pass `rematerialize` does the rest.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "brrr/tensor/tensor.h"

namespace brrr {

using CheckpointFunction = std::function<Tensors(std::span<const Tensor>)>;
Tensors checkpoint_call(const CheckpointFunction& fn, std::span<const Tensor> inputs);

// fn takes as many tensors as are given, and returns a tensor, Tensors or a vector of tensors.
template <typename Fn, typename... Args>
auto checkpoint(Fn fn, const Args&... args) {
  using Result = std::invoke_result_t<Fn&, const Args&...>;
  const std::array<Tensor, sizeof...(Args)> inputs{args...};
  const CheckpointFunction run = [fn = std::move(fn)](std::span<const Tensor> given) mutable {
    return [&]<size_t... I>(std::index_sequence<I...>)->Tensors {
      if constexpr (std::is_same_v<Result, Tensor>) {
        return {fn(given[I]...)};
      } else {
        Tensors all;
        for (const Tensor& x : fn(given[I]...)) all.push_back(x);
        return all;
      }
    }
    (std::index_sequence_for<Args...>());
  };
  Tensors results = checkpoint_call(run, inputs);
  if constexpr (std::is_same_v<Result, Tensor>) {
    return Tensor(results[0]);
  } else if constexpr (std::is_same_v<Result, Tensors>) {
    return results;
  } else {
    return Result(results.begin(), results.end());
  }
}

}  // namespace brrr
