#include "brrr/sweep/gradients.h"

#include <cmath>
#include <functional>

#include "brrr/autodiff/grad.h"
#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/samples.h"
#include "brrr/sweep/compare.h"

namespace brrr::sweep {
namespace {

using LossFn = std::function<Tensor(const Tensors& inputs)>;

// A fixed weighted sum of all float results: one number that depends on each element differently.
Tensor weighted_sum(const Tensors& results) {
  Tensor total = zeros({}, {.dtype = DType::f64});
  uint32_t seed = 500;
  for (const Tensor& result : results) {
    if (!is_float(result.dtype())) continue;
    const Tensor wide = cast(result, DType::f64);
    const Tensor finite =
        where(isfinite(wide), wide, 0.0);  // the logsumexp of nothing has no slope
    total = total + sum(finite * sample_values(result.shape(), seed++, -1, 1));
  }
  return total;
}

// Compares d loss / d input_i along a fixed direction with central differences. One direction tests all
// elements at once: a wrong element would have to cancel against its random weight.
void check_along_direction(const Case& c, int i, const Tensor& gradient, const LossFn& loss,
                           std::string_view what) {
  constexpr double kStep = 1e-6;
  const Tensor direction =
      sample_values(c.inputs[i].shape(), 600 + static_cast<uint32_t>(i), -1, 1);
  const double slope = sum(gradient * direction).item<double>();
  NoGrad no_tape;
  Tensors plus = c.inputs, minus = c.inputs;
  plus[i] = c.inputs[i].detach() + direction * kStep;
  minus[i] = c.inputs[i].detach() - direction * kStep;
  const double difference = (loss(plus).item<double>() - loss(minus).item<double>()) / (2 * kStep);
  const double scale = 1 + std::fabs(slope) + sum(abs(gradient)).item<double>();
  check(std::fabs(slope - difference) <= 1e-6 * scale, c, ": ", what, " for input ", i,
        " gives slope ", slope, ", central differences give ", difference);
}

// A result that is rounded to fewer bits moves in steps that differences of 1e-6 do not see.
bool is_smooth(const Case& c) {
  NoGrad no_tape;
  for (const Tensor& result : run_case(c)) {
    if (is_float(result.dtype()) && result.dtype() != DType::f64) return false;
  }
  return true;
}

// Leaves that want gradients, in place of the float inputs.
Case with_leaves(const Case& c) {
  Case leaves = c;
  for (Tensor& input : leaves.inputs) {
    input = clone(input);
    if (is_float(input.dtype())) input.require_grad();
  }
  return leaves;
}

std::vector<Tensor> wanting(const Tensors& inputs) {
  std::vector<Tensor> result;
  for (const Tensor& input : inputs) {
    if (input.requires_grad()) result.push_back(input);
  }
  return result;
}

// Differences need f64. An op without it, and without a rule, has the gradients of its pieces, which are
// checked by themselves.
bool has_differences(const OpDef& op) {
  return is_differentiable(op) && (op.grad || op.dtypes.contains(DType::f64));
}

}  // namespace

void check_gradients(const OpDef& op) {
  if (!has_differences(op)) return;
  for (const Case& c : cases_of(op, DType::f64)) {
    const Case leaves = with_leaves(c);
    if (wanting(leaves.inputs).empty() || !is_smooth(c)) continue;
    const LossFn loss = [&](const Tensors& inputs) {
      return weighted_sum(call_op(op, inputs, c.attrs));
    };
    const Tensor result = loss(leaves.inputs);
    if (!result.requires_grad()) continue;
    const std::vector<Tensor> gradients = grad(result, wanting(leaves.inputs));
    size_t next = 0;
    for (int i = 0; i < leaves.inputs.size(); ++i) {
      if (is_float(leaves.inputs[i].dtype()))
        check_along_direction(leaves, i, gradients[next++], loss, "the gradient rule");
    }
  }
}

void check_second_gradients(const OpDef& op) {
  if (!has_differences(op)) return;
  for (const Case& c : cases_of(op, DType::f64)) {
    const Case leaves = with_leaves(c);
    if (wanting(leaves.inputs).empty() || is_large(c) || !is_smooth(c)) continue;
    // The first gradient, squashed to one number, is a function like any other.
    const LossFn loss = [&](const Tensors& inputs) {
      NoGrad record(true);
      Tensors fresh = inputs;
      for (Tensor& input : fresh) {
        if (is_float(input.dtype()) && !input.requires_grad())
          input = clone(input.detach()).require_grad();
      }
      const Tensor first = weighted_sum(call_op(op, fresh, c.attrs));
      Tensors gradients;
      for (const Tensor& gradient : grad(square(first), wanting(fresh), {.create_graph = true}))
        gradients.push_back(gradient);
      return weighted_sum(gradients);
    };
    if (!weighted_sum(call_op(op, leaves.inputs, c.attrs)).requires_grad()) continue;
    const Tensor result = loss(leaves.inputs);
    const std::vector<Tensor> gradients = grad(result, wanting(leaves.inputs));
    size_t next = 0;
    for (int i = 0; i < leaves.inputs.size(); ++i) {
      if (is_float(leaves.inputs[i].dtype()))
        check_along_direction(leaves, i, gradients[next++], loss, "the gradient of the gradient");
    }
  }
}

}  // namespace brrr::sweep
