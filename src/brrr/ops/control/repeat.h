// repeat: the sums of what a function gives for one micro-batch after the other. Gradient accumulation,
// with a count that is an input of the compiled step:
//
//   auto step = compile([&](Tensor tokens, Tensor targets, Tensor micro_batches, Tensor rate) {
//     std::vector<Tensor> sums = repeat(micro_batches, {tokens, targets},
//                                       [&](const Tensor& x, const Tensor& y) {
//       const Tensor loss = model.loss(x, y);                       // of one micro-batch
//       std::vector<Tensor> parts = grad(loss, parameters);
//       parts.push_back(loss);
//       return parts;
//     });
//     const Tensor loss = sums.back() / micro_batches;              // averaging is the caller's
//     ...
//   });
//
// tokens is [most, batch, seq], and the first `micro_batches` of its slices are used. In a compiled
// program the body is one list of kernels that runs again and again over the same memory, with the sums
// beside it; outside of one it is a loop. Both add in the order of the slices, from zero.
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "brrr/tensor/tensor.h"

namespace brrr {

// One iteration: which one, as i64[], and the slices that belong to it.
using RepeatBody =
    std::function<std::vector<Tensor>(const Tensor& index, std::span<const Tensor> slices)>;

// The sums over iterations 0 .. count - 1 of each tensor that the body returns: in f32 for f32 and
// narrower floats, in f64 and i64 for the others. They are cut off from the tape: gradients are taken
// inside the body. Writes of the body to tensors from outside carry over to the next iteration.
std::vector<Tensor> repeat(const Tensor& count, std::span<const Tensor> sliced,
                           const RepeatBody& body);

namespace repeat_detail {

inline std::vector<Tensor> as_vector(std::vector<Tensor> parts) { return parts; }
inline std::vector<Tensor> as_vector(const Tensors& parts) { return {parts.begin(), parts.end()}; }
inline std::vector<Tensor> as_vector(const Tensor& part) { return {part}; }

template <typename Body, size_t... I>
std::vector<Tensor> call(Body& body, const Tensor& index, std::span<const Tensor> slices,
                         std::index_sequence<I...>) {
  if constexpr (std::is_invocable_v<Body&, const Tensor&, decltype((void(I), slices[I]))...>) {
    return as_vector(body(index, slices[I]...));
  } else {
    return as_vector(body(slices[I]...));
  }
}

}  // namespace repeat_detail

// The same with a body that takes one parameter for each slice, or the index before them.
template <size_t kSliced, typename Body>
std::vector<Tensor> repeat(const Tensor& count, const Tensor (&sliced)[kSliced], Body body) {
  return repeat(count, std::span<const Tensor>(sliced),
                [&](const Tensor& index, std::span<const Tensor> slices) {
                  return repeat_detail::call(body, index, slices,
                                             std::make_index_sequence<kSliced>());
                });
}

}  // namespace brrr
