#include "brrr/ops/index/sort.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/index/sort_cpu.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"

namespace brrr {
namespace {

TensorTypes infer_sort(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  normalize_axis(call.attrs.integer("axis"), call.shape(0).size(), "sort");
  return {{call.shape(0), call.dtype(0)}, {call.shape(0), DType::i64}};
}

TensorTypes infer_topk(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  Shape shape = call.shape(0);
  const int axis = normalize_axis(call.attrs.integer("axis"), shape.size(), "topk");
  const int64_t k = call.attrs.integer("k");
  check(k >= 0 && k <= shape[axis], "topk: k is ", k, " and axis ", axis, " of shape ", shape,
        " has ", shape[axis], " elements; use 0 <= k <= ", shape[axis]);
  shape[axis] = k;
  return {{shape, call.dtype(0)}, {shape, DType::i64}};
}

// Every place of x is named at most once: the sum of scatter_add only places dy.
Tensors sort_grad(const GradCall& call) {
  const Tensor &x = call.input(0), &dy = call.output_grad(0);
  return {scatter_add(zeros(x.shape(), {x.dtype(), dy.device()}), call.attrs.integer("axis"),
                      call.output(1).detach(), dy)};
}

bool comes_before(double a, double b) {  // NaN last
  return a < b || (std::isnan(b) && !std::isnan(a));
}

Tensors sort_reference(const ComposeCall& call) {
  const Tensor& x = call.input(0);
  const int axis = normalize_axis(call.attrs.integer("axis"), x.rank(), "sort");
  Shape shape = x.shape();
  if (call.attrs.has("k")) shape[axis] = call.attrs.integer("k");
  const Tensor values = empty(shape, x.dtype()), indices = empty(shape, DType::i64);
  const int64_t size = x.shape()[axis], kept = shape[axis], step = indices.strides()[axis];
  Layout from = x.layout(), to = values.layout();  // the first element of every row
  from.shape[axis] = to.shape[axis] = 1;
  std::vector<int64_t> starts;
  for_each_element(to, [&](int64_t start) { starts.push_back(start); });
  size_t row = 0;
  for_each_element(from, [&](int64_t start) {
    const auto value = [&](int64_t i) { return load_float(x, start + i * x.strides()[axis]); };
    std::vector<int64_t> order(static_cast<size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return call.attrs.flag("descending") ? comes_before(value(b), value(a))
                                           : comes_before(value(a), value(b));
    });
    const int64_t first = kept > 0 ? starts[row++] : 0;
    for (int64_t i = 0; i < kept; ++i) {
      store_float(values, first + i * step, value(order[static_cast<size_t>(i)]));
      store_int(indices, first + i * step, order[static_cast<size_t>(i)]);
    }
  });
  return {values, indices};
}

// Values in disorder, no two nearer than 4 / count: differences must not swap any. 7919 is a prime,
// so that i * 7919 meets every remainder once for counts that it does not divide.
Tensor shuffled_values(const Shape& shape) {
  const Tensor x = empty(shape, DType::f64);
  const int64_t count = std::max<int64_t>(1, x.numel());
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.data<double>()[i] =
        static_cast<double>(i * 7919 % count) * 4.0 / static_cast<double>(count) - 2;
  }
  return x;
}

std::vector<Sample> sort_samples() {
  const auto sorted = [](int64_t axis, bool descending) {
    return Attrs{{"axis", axis}, {"descending", descending}};
  };
  return {{{shuffled_values({7})}, sorted(0, false)},
          {{shuffled_values({4, 6})}, sorted(1, true)},
          {{shuffled_values({5, 3, 2})}, sorted(0, false)},
          {{shuffled_values({3, 50, 2})}, sorted(-2, true)},
          {{shuffled_values({1})}, sorted(0, false)},
          {{shuffled_values({0, 3})}, sorted(1, false)},
          {{shuffled_values({3, 0})}, sorted(1, false)},
          {{shuffled_values({30, 700})}, sorted(1, false)}};
}

std::vector<Sample> topk_samples() {
  const auto top = [](int64_t k, int64_t axis, bool descending) {
    return Attrs{{"k", k}, {"axis", axis}, {"descending", descending}};
  };
  return {{{shuffled_values({7})}, top(3, 0, true)},
          {{shuffled_values({4, 6})}, top(2, 1, false)},
          {{shuffled_values({5, 3, 2})}, top(5, 0, true)},
          {{shuffled_values({2, 50, 2})}, top(9, -2, true)},
          {{shuffled_values({1})}, top(1, 0, true)},
          {{shuffled_values({3, 4})}, top(0, 1, true)},
          {{shuffled_values({0, 3})}, top(2, 1, true)},
          {{shuffled_values({30, 700})}, top(40, 1, true)}};
}

Sorted both(const Tensors& outputs) { return {outputs[0], outputs[1]}; }

}  // namespace

const OpDef sort_op{.name = "sort",
                    .formula = "x in order along an axis, and where each element was",
                    .kind = OpKind::other,
                    .dtypes = kAnyDType,
                    .flops_per_element = 0,
                    .infer = infer_sort,
                    .grad = sort_grad,
                    .grad_reads = {.outputs = 0b10},
                    .reference = sort_reference,
                    .cpu = kernels::sort_cpu,
                    .samples = sort_samples};

const OpDef topk_op{.name = "topk",
                    .formula = "the k largest along an axis, and where each was",
                    .kind = OpKind::other,
                    .dtypes = kAnyDType,
                    .flops_per_element = 0,
                    .infer = infer_topk,
                    .grad = sort_grad,
                    .grad_reads = {.outputs = 0b10},
                    .reference = sort_reference,
                    .cpu = kernels::sort_cpu,
                    .samples = topk_samples};

Sorted sort(const Tensor& x, int64_t axis, Order order) {
  return both(
      call_op(sort_op, {&x, 1}, {{"axis", axis}, {"descending", order == Order::descending}}));
}
Tensor argsort(const Tensor& x, int64_t axis, Order order) { return sort(x, axis, order).indices; }
Sorted topk(const Tensor& x, int64_t k, int64_t axis, Pick pick) {
  return both(
      call_op(topk_op, {&x, 1}, {{"k", k}, {"axis", axis}, {"descending", pick == Pick::largest}}));
}

}  // namespace brrr
