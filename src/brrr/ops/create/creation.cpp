#include "brrr/ops/create/creation.h"

#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/elementwise/convert_cpu.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

TensorTypes infer_from_attrs(const InferCall& call) {
  return {{call.attrs.list("shape"), call.attrs.get<DType>("dtype")}};
}

// Fills an output from value(i), computed in f64, in pieces.
template <typename Value>
void generate(const KernelCall& call, Value value) {
  const Operand& output = call.output(0);
  const int64_t count = output.count();
  const auto run_piece = [&](int64_t piece) {
    double buffer[kTileElements];
    const int64_t end = std::min(count, (piece + 1) * kernels::kPieceElements);
    for (int64_t tile = piece * kernels::kPieceElements; tile < end; tile += kTileElements) {
      const int64_t n = std::min(kTileElements, end - tile);
      for (int64_t i = 0; i < n; ++i) buffer[i] = value(tile + i);
      kernels::store_elements(ComputeType::f64, buffer, output.dtype, output.base,
                              output.layout->offset + tile, 1, n);
    }
  };
  call.pool.for_each_piece((count + kernels::kPieceElements - 1) / kernels::kPieceElements,
                           run_piece);
}

Tensors full_reference(const ComposeCall& call) {
  Tensor y = empty(call.attrs.list("shape"), call.attrs.get<DType>("dtype"));
  for (int64_t i = 0; i < y.numel(); ++i) store_float(y, i, call.attrs.number("value"));
  return {y};
}

Tensors arange_reference(const ComposeCall& call) {
  Tensor y = empty(call.attrs.list("shape"), call.attrs.get<DType>("dtype"));
  for (int64_t i = 0; i < y.numel(); ++i) {
    store_float(y, i,
                call.attrs.number("start") + static_cast<double>(i) * call.attrs.number("step"));
  }
  return {y};
}

Attrs full_attrs(const Shape& shape, double value, TensorOptions options) {
  return {{"shape", shape}, {"dtype", options.dtype}, {"device", options.device}, {"value", value}};
}

Attrs arange_attrs(int64_t count, double start, double step, TensorOptions options) {
  return {{"shape", Shape{count}},
          {"dtype", options.dtype},
          {"device", options.device},
          {"start", start},
          {"step", step}};
}

}  // namespace

const OpDef full_op{.name = "full",
                    .formula = "one value everywhere",
                    .kind = OpKind::creation,
                    .role = OpRole::full,
                    .dtypes = kAnyDType,
                    .flops_per_element = 0,
                    .infer = infer_from_attrs,
                    .reference = full_reference,
                    .cpu =
                        [](const KernelCall& call) {
                          const double value = call.attrs.number("value");
                          generate(call, [value](int64_t) { return value; });
                        },
                    .samples = []() -> std::vector<Sample> {
                      return {{{}, full_attrs({3, 5}, 2.5, {})},
                              {{}, full_attrs({}, -1, {.dtype = DType::bf16})},
                              {{}, full_attrs({0}, 1, {})},
                              {{}, full_attrs({100, 1000}, 3, {.dtype = DType::i32})}};
                    }};

const OpDef arange_op{
    .name = "arange",
    .formula = "start + i * step",
    .kind = OpKind::creation,
    .dtypes = kNumbers,
    .infer = infer_from_attrs,
    .reference = arange_reference,
    .cpu =
        [](const KernelCall& call) {
          const double start = call.attrs.number("start"), step = call.attrs.number("step");
          generate(call, [=](int64_t i) { return start + static_cast<double>(i) * step; });
        },
    .samples = []() -> std::vector<Sample> {
      return {{{}, arange_attrs(10, 0, 1, {.dtype = DType::i64})},
              {{}, arange_attrs(7, -1, 0.25, {})},
              {{}, arange_attrs(0, 0, 1, {})},
              {{}, arange_attrs(60000, 5, 2, {.dtype = DType::i32})}};
    }};

// A host number as a node of a graph. Eager code writes the number into a tensor directly (ops/elementwise/arg.h).
const OpDef number_op{
    .name = "number",
    .formula = "a host number: one element that adapts to the dtypes beside it",
    .kind = OpKind::creation,
    .role = OpRole::number,
    .dtypes = kAnyDType,
    .flops_per_element = 0,
    .infer = [](const InferCall& call) -> TensorTypes {
      return {{.shape = {}, .dtype = call.attrs.get<DType>("dtype"), .weak = true}};
    },
    .reference = [](const ComposeCall& call) -> Tensors {
      const Tensor y = empty({}, call.attrs.get<DType>("dtype"));
      y.body().weak = true;
      if (y.dtype() == DType::f64) {
        store_float(y, 0, call.attrs.number("value"));
      } else {
        store_int(y, 0, call.attrs.integer("value"));
      }
      return {y};
    },
    .cpu =
        [](const KernelCall& call) {
          const Operand& output = call.output(0);
          const bool is_float = output.dtype == DType::f64;
          const double number = is_float ? call.attrs.number("value") : 0;
          const int64_t integer = is_float ? 0 : call.attrs.integer("value");
          kernels::store_elements(is_float ? ComputeType::f64 : ComputeType::i64,
                                  is_float ? static_cast<const void*>(&number) : &integer,
                                  output.dtype, output.base, output.layout->offset, 1, 1);
        },
    .samples = []() -> std::vector<Sample> {
      const auto number = [](DType dtype, AttrValue value) {
        return Sample{{}, {{"dtype", dtype}, {"device", Device::cpu()}, {"value", value}}};
      };
      return {number(DType::f64, 0.1), number(DType::i64, int64_t{1} << 62),
              number(DType::boolean, int64_t{1})};
    }};

Tensor full(const Shape& shape, double value, TensorOptions options) {
  return call_one(full_op, {}, full_attrs(shape, value, options));
}
Tensor zeros(const Shape& shape, TensorOptions options) { return full(shape, 0, options); }
Tensor ones(const Shape& shape, TensorOptions options) { return full(shape, 1, options); }
Tensor zeros_like(const Tensor& x) { return zeros(x.shape(), {x.dtype(), x.device()}); }
Tensor ones_like(const Tensor& x) { return ones(x.shape(), {x.dtype(), x.device()}); }

Tensor arange(double start, double stop, double step, TensorOptions options) {
  check(step != 0, "arange: a step of 0 never reaches ", stop);
  const double count = std::ceil((stop - start) / step);
  check(std::isfinite(count) && count < 9e15, "arange: from ", start, " to ", stop, " in steps of ",
        step, " is not a countable number of elements");
  return call_one(
      arange_op, {},
      arange_attrs(std::max<int64_t>(0, static_cast<int64_t>(count)), start, step, options));
}
Tensor arange(int64_t count) { return arange(0, static_cast<double>(count)); }

Tensor linspace(double start, double stop, int64_t count, TensorOptions options) {
  check(count >= 0, "linspace: ", count, " points; use a number >= 0");
  const double step = count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0;
  Tensor points = call_one(arange_op, {}, arange_attrs(count, start, step, options));
  if (count > 1) points[count - 1].fill(stop);  // exactly, whatever start + (n-1) step rounds to
  return points;
}

Tensor eye(int64_t rows, int64_t cols, TensorOptions options) {
  const TensorOptions index{.dtype = DType::i64, .device = options.device};
  const Tensor row = arange(0, static_cast<double>(rows), 1, index);
  const Tensor col = arange(0, static_cast<double>(cols < 0 ? rows : cols), 1, index);
  return cast(equal(unsqueeze(row, 1), col), options.dtype);
}

Shape Literal::shape() const {
  if (!is_list_) return {};
  Shape shape = items_.empty() ? Shape{} : items_.front().shape();
  for (const Literal& item : items_) {
    check(item.shape() == shape, "tensor: parts of shape ", shape, " and ", item.shape(),
          " stand beside each other; give all the same shape");
  }
  shape.insert(0, static_cast<int64_t>(items_.size()));
  return shape;
}

void Literal::append_values(std::vector<double>& values) const {
  if (!is_list_) values.push_back(value_);
  for (const Literal& item : items_) item.append_values(values);
}

Tensor tensor(const Literal& values, TensorOptions options) {
  CategoryScope scope(Category::data);
  std::vector<double> flat;
  values.append_values(flat);
  return to(cast(from_values(flat, values.shape()), options.dtype), options.device);
}

}  // namespace brrr
