#include "brrr/ops/view/views.h"

#include <numeric>

#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/slice_backward.h"

namespace brrr {
namespace {

// The layout rule on a contiguous input gives the type of the result.
TensorTypes infer_view(const InferCall& call) {
  return {{call.op.view(contiguous_layout(call.shape(0)), call.attrs).shape, call.dtype(0),
           call.inputs[0].weak}};
}

Layout view_rule(const Layout& layout, const Attrs& attrs) {
  const Shape shape = resolve_shape(layout.shape, attrs.list("shape"), "view");
  const auto result = try_view_layout(layout, shape);
  if (result) return *result;
  fail("view: shape ", layout.shape, " with strides ", layout.strides, " cannot be seen as ", shape,
       " without a copy; use reshape(), or contiguous() first");
}

Slice slice_of(const Attrs& attrs) {
  return {attrs.integer("start"), attrs.integer("stop"), attrs.integer("step")};
}

Attrs slice_attrs(int64_t axis, Slice range) {
  return {{"axis", axis}, {"start", range.start}, {"stop", range.stop}, {"step", range.step}};
}

Tensors inverse_permute_grad(const GradCall& call) {
  const Axes& axes = call.attrs.list("axes");
  Axes inverse(axes.size(), 0);
  for (int i = 0; i < axes.size(); ++i)
    inverse[normalize_axis(axes[i], axes.size(), "permute")] = i;
  return {permute(call.output_grad(0), inverse)};
}

std::vector<Sample> view_samples(const Attrs& attrs) {
  return {{{sample_values({2, 6, 4}, 21)}, attrs}, {{sample_values({1, 6, 9}, 22)}, attrs}};
}

}  // namespace

const OpDef transpose_op{
    .name = "transpose",
    .formula = "two axes swapped",
    .kind = OpKind::view,
    .role = OpRole::transpose,
    .dtypes = kAnyDType,
    .infer = infer_view,
    .grad = [](const GradCall& call) -> Tensors {
      return {transpose(call.output_grad(0), call.attrs.integer("a"), call.attrs.integer("b"))};
    },
    .view =
        [](const Layout& layout, const Attrs& attrs) {
          return transpose_layout(layout, attrs.integer("a"), attrs.integer("b"));
        },
    .samples =
        [] {
          return view_samples({{"a", int64_t{0}}, {"b", int64_t{-1}}});
        }};

const OpDef permute_op{
    .name = "permute",
    .formula = "axes in another order",
    .kind = OpKind::view,
    .dtypes = kAnyDType,
    .infer = infer_view,
    .grad = inverse_permute_grad,
    .view = [](const Layout& layout,
               const Attrs& attrs) { return permute_layout(layout, attrs.list("axes")); },
    .samples =
        [] {
          return view_samples({{"axes", Axes{2, 0, 1}}});
        }};

const OpDef slice_op{
    .name = "slice",
    .formula = "x[start:stop:step] on one axis",
    .kind = OpKind::view,
    .dtypes = kAnyDType,
    .infer = infer_view,
    .grad = [](const GradCall& call) -> Tensors {
      return {place_slice(call.output_grad(0), call.input(0).shape(), call.attrs.integer("axis"),
                          slice_of(call.attrs))};
    },
    .view =
        [](const Layout& layout, const Attrs& attrs) {
          return slice_layout(layout, attrs.integer("axis"), slice_of(attrs));
        },
    .samples =
        [] {
          std::vector<Sample> samples = view_samples(slice_attrs(1, {1, -1, 2}));
          samples.push_back({{sample_values({3, 4}, 23)}, slice_attrs(0, {2, 2, 1})});
          return samples;
        }};

const OpDef select_op{
    .name = "select",
    .formula = "x[i] on one axis",
    .kind = OpKind::view,
    .dtypes = kAnyDType,
    .infer = infer_view,
    .grad = [](const GradCall& call) -> Tensors {
      const Shape& shape = call.input(0).shape();
      const int axis = normalize_axis(call.attrs.integer("axis"), shape.size(), "select");
      const int64_t given = call.attrs.integer("index");
      const int64_t index = given < 0 ? given + shape[axis] : given;
      return {
          place_slice(unsqueeze(call.output_grad(0), axis), shape, axis, {index, index + 1, 1})};
    },
    .view =
        [](const Layout& layout, const Attrs& attrs) {
          return select_layout(layout, attrs.integer("axis"), attrs.integer("index"));
        },
    .samples =
        [] {
          return view_samples({{"axis", int64_t{1}}, {"index", int64_t{-2}}});
        }};

const OpDef expand_op{
    .name = "expand",
    .formula = "sizes of 1 repeated",
    .kind = OpKind::view,
    .dtypes = kAnyDType,
    .infer = infer_view,
    .grad = [](const GradCall& call) -> Tensors {
      return {reduce_like(call.output_grad(0), call.input(0))};
    },
    .view = [](const Layout& layout,
               const Attrs& attrs) { return expand_layout(layout, attrs.list("shape")); },
    .samples = []() -> std::vector<Sample> {
      return {{{sample_values({3, 1, 2}, 24)}, {{"shape", Axes{4, 3, 5, 2}}}},
              {{sample_values({}, 25)}, {{"shape", Axes{2, 3}}}},
              {{sample_values({1, 3}, 26)}, {{"shape", Axes{0, 3}}}}};
    }};

const OpDef squeeze_op{
    .name = "squeeze",
    .formula = "an axis of size 1 dropped",
    .kind = OpKind::view,
    .dtypes = kAnyDType,
    .infer = infer_view,
    .grad = [](const GradCall& call) -> Tensors {
      return {reshape(call.output_grad(0), call.input(0).shape())};
    },
    .view = [](const Layout& layout,
               const Attrs& attrs) { return squeeze_layout(layout, attrs.integer("axis")); },
    .samples = []() -> std::vector<Sample> {
      return {{{sample_values({3, 1, 2}, 27)}, {{"axis", int64_t{1}}}}};
    }};

const OpDef unsqueeze_op{
    .name = "unsqueeze",
    .formula = "a new axis of size 1",
    .kind = OpKind::view,
    .dtypes = kAnyDType,
    .infer = infer_view,
    .grad = [](const GradCall& call) -> Tensors {
      return {reshape(call.output_grad(0), call.input(0).shape())};
    },
    .view = [](const Layout& layout,
               const Attrs& attrs) { return unsqueeze_layout(layout, attrs.integer("axis")); },
    .samples =
        [] {
          return view_samples({{"axis", int64_t{-1}}});
        }};

const OpDef unfold_op{
    .name = "unfold",
    .formula = "sliding windows over one axis",
    .kind = OpKind::view,
    .dtypes = kAnyDType,
    .infer = infer_view,
    .grad = [](const GradCall& call) -> Tensors {
      const Shape& shape = call.input(0).shape();
      const int64_t axis = normalize_axis(call.attrs.integer("axis"), shape.size(), "unfold");
      return {call_one(fold_op, {call.output_grad(0)},
                       {{"axis", axis}, {"step", call.attrs.integer("step")}, {"shape", shape}})};
    },
    .view =
        [](const Layout& layout, const Attrs& attrs) {
          return unfold_layout(layout, attrs.integer("axis"), attrs.integer("size"),
                               attrs.integer("step"));
        },
    .samples =
        [] {
          return view_samples({{"axis", int64_t{1}}, {"size", int64_t{3}}, {"step", int64_t{2}}});
        }};

const OpDef view_op{.name = "view",
                    .formula = "another shape, same elements",
                    .kind = OpKind::view,
                    .role = OpRole::reshape,
                    .dtypes = kAnyDType,
                    .infer = infer_view,
                    .grad = [](const GradCall& call) -> Tensors {
                      return {reshape(call.output_grad(0), call.input(0).shape())};
                    },
                    .view = view_rule,
                    .samples =
                        [] {
                          return view_samples({{"shape", Axes{3, -1}}});
                        }};

Tensor transpose(const Tensor& x, int64_t axis_a, int64_t axis_b) {
  return call_one(transpose_op, {x}, {{"a", axis_a}, {"b", axis_b}});
}
Tensor permute(const Tensor& x, const Axes& axes) {
  return call_one(permute_op, {x}, {{"axes", axes}});
}
Tensor slice(const Tensor& x, int64_t axis, Slice range) {
  return call_one(slice_op, {x}, slice_attrs(axis, range));
}
Tensor select(const Tensor& x, int64_t axis, int64_t index) {
  return call_one(select_op, {x}, {{"axis", axis}, {"index", index}});
}
Tensor Tensor::operator[](int64_t index) const { return select(*this, 0, index); }
Tensor expand(const Tensor& x, const Shape& shape) {
  return call_one(expand_op, {x}, {{"shape", shape}});
}
Tensor squeeze(const Tensor& x, int64_t axis) {
  return call_one(squeeze_op, {x}, {{"axis", axis}});
}
Tensor unsqueeze(const Tensor& x, int64_t axis) {
  return call_one(unsqueeze_op, {x}, {{"axis", axis}});
}
Tensor unfold(const Tensor& x, int64_t axis, int64_t size, int64_t step) {
  return call_one(unfold_op, {x}, {{"axis", axis}, {"size", size}, {"step", step}});
}
Tensor view(const Tensor& x, const Shape& shape) {
  return call_one(view_op, {x}, {{"shape", shape}});
}

Tensor reshape(const Tensor& x, const Shape& shape) {
  const Shape resolved = resolve_shape(x.shape(), shape, "reshape");
  if (resolved == x.shape()) return x;
  return view(try_view_layout(x.layout(), resolved) ? x : contiguous(x), resolved);
}

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t axis) {
  const int64_t whole = x.dim(axis),
                total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  check(total == whole, "split: the sizes add up to ", total, ", but axis ", axis, " of shape ",
        x.shape(), " has ", whole);
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (int64_t size : sizes) {
    check(size >= 0, "split: size ", size, " is negative");
    parts.push_back(slice(x, axis, {start, start + size}));
    start += size;
  }
  return parts;
}

std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t axis) {
  check(size > 0, "split: parts of size ", size, " make no progress; use a positive size");
  std::vector<int64_t> sizes;
  for (int64_t left = x.dim(axis); left > 0; left -= size) sizes.push_back(std::min(size, left));
  if (sizes.empty()) sizes.push_back(0);
  return split(x, sizes, axis);
}

}  // namespace brrr
