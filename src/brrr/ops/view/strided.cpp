// Views and writes by strides: what a trace needs where several handles show one storage. A handle whose
// storage was written since is derived again from the new elements by strided_view; a write through it
// is an update_view.
#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"

namespace brrr {
namespace {

Layout layout_of(const Attrs& attrs) {
  return {attrs.list("shape"), attrs.list("strides"), attrs.integer("offset")};
}

void require_in_order(const Layout& base) {
  check(base.is_contiguous(), "strided_view: strides count elements that lie in order, and shape ",
        base.shape, " with strides ", base.strides, " does not; copy it with contiguous() first");
}

void require_inside(const InferCall& call, const Layout& layout) {
  int64_t last = layout.offset;
  check(layout.strides.size() == layout.rank() && layout.offset >= 0, call.op.name, ": shape ",
        layout.shape, " and strides ", layout.strides, " do not belong together");
  for (int axis = 0; axis < layout.rank(); ++axis) {
    check(layout.strides[axis] >= 0, call.op.name, ": strides ", layout.strides,
          " must not be negative");
    last += (layout.shape[axis] - 1) * layout.strides[axis];
  }
  check(numel(layout.shape) == 0 || last < numel(call.shape(0)), call.op.name, ": shape ",
        layout.shape, " with strides ", layout.strides, " reaches element ", last, " of ",
        call.shape(0));
}

TensorTypes infer_strided_view(const InferCall& call) {
  const Layout layout = layout_of(call.attrs);
  require_inside(call, layout);
  return {{layout.shape, call.dtype(0), call.inputs[0].weak}};
}

TensorTypes infer_update_view(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  const Layout layout = layout_of(call.attrs);
  require_inside(call, layout);
  check(call.shape(1) == layout.shape && call.dtype(1) == call.dtype(0), call.op.name,
        ": elements ", call.dtype(1), call.shape(1), " do not fit the view ", call.dtype(0),
        layout.shape);
  return {{call.shape(0), call.dtype(0)}};
}

// The output may be the first input's own memory; then only the view is written.
void update_view_cpu(const KernelCall& call) {
  const Operand &x = call.input(0), &output = call.output(0);
  if (x.base != output.base || *x.layout != *output.layout)
    kernels::run_copy({call.op, call.inputs.first(1), call.outputs, call.attrs, {}, call.pool});
  Layout place = layout_of(call.attrs);
  place.offset += output.layout->offset;
  const Operand hole{output.base, &place, output.dtype};
  kernels::run_copy({call.op, call.inputs.subspan(1, 1), {&hole, 1}, call.attrs, {}, call.pool});
}

Tensors update_view_reference(const ComposeCall& call) {
  const Tensor y = empty(call.input(0).shape(), call.input(0).dtype());
  int64_t next = 0;
  for (double value : call.input(0).to_vector<double>()) store_float(y, next++, value);
  const std::vector<double> values = call.input(1).to_vector<double>();
  size_t read = 0;
  for_each_element(layout_of(call.attrs), [&](int64_t i) { store_float(y, i, values[read++]); });
  return {y};
}

Attrs strided(const Shape& shape, const Strides& strides, int64_t offset) {
  return {{"shape", shape}, {"strides", strides}, {"offset", offset}};
}

}  // namespace

const OpDef strided_view_op{.name = "strided_view",
                            .formula = "elements offset + i * strides of x, in place",
                            .kind = OpKind::view,
                            .dtypes = kAnyDType,
                            .infer = infer_strided_view,
                            .view =
                                [](const Layout& base, const Attrs& attrs) {
                                  require_in_order(base);
                                  Layout layout = layout_of(attrs);
                                  layout.offset += base.offset;
                                  return layout;
                                },
                            .samples = []() -> std::vector<Sample> {
                              return {{{sample_values({4, 6}, 270)}, strided({3, 2}, {6, 2}, 1)},
                                      {{sample_values({5}, 271)}, strided({2, 3}, {0, 1}, 2)},
                                      {{sample_values({5}, 272)}, strided({0}, {1}, 0)}};
                            }};

const OpDef update_view_op{
    .name = "update_view",
    .formula = "x with other elements in a view of it",
    .kind = OpKind::other,
    .dtypes = kAnyDType,
    .flops_per_element = 0,
    .infer = infer_update_view,
    .reference = update_view_reference,
    .cpu = update_view_cpu,
    .overwrites = {.input = 0, .output = 0},
    .samples = []() -> std::vector<Sample> {
      return {
          {{sample_values({4, 6}, 273), sample_values({3, 2}, 274)}, strided({3, 2}, {6, 2}, 1)},
          {{sample_values({7}, 275), sample_values({2}, 276)}, strided({2}, {3}, 0)},
          {{sample_values({3}, 277), sample_values({0}, 278)}, strided({0}, {1}, 0)},
          {{sample_values({300, 200}, 279), sample_values({200, 300}, 280)},
           strided({200, 300}, {1, 200}, 0)}};
    }};

}  // namespace brrr
