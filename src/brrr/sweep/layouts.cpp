#include "brrr/sweep/layouts.h"

#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"

namespace brrr::sweep {

Tensor spread_out(const Tensor& x) {
  Layout layout = contiguous_layout(x.shape());
  for (int64_t& stride : layout.strides) stride *= 2;
  layout.offset = 1;
  const Tensor storage = zeros({2 * x.numel() + 2}, {.dtype = x.dtype(), .device = x.device()});
  const Tensor result = make_view(storage, layout);
  result.copy_from(x);
  return result;
}

Tensor reversed_in_memory(const Tensor& x) {
  Axes reversed;
  for (int axis = x.rank() - 1; axis >= 0; --axis) reversed.push_back(axis);
  const Tensor turned = clone(make_view(x, permute_layout(x.layout(), reversed)));
  return make_view(turned, permute_layout(turned.layout(), reversed));
}

Tensor unaligned(const Tensor& x) {
  const Tensor storage = zeros({x.numel() + 1}, {.dtype = x.dtype(), .device = x.device()});
  Layout layout = contiguous_layout(x.shape());
  layout.offset = 1;
  const Tensor result = make_view(storage, layout);
  result.copy_from(x);
  return result;
}

bool refuses_strides(const OpDef& op) { return op.name == "view" || op.name == "strided_view"; }

}  // namespace brrr::sweep
