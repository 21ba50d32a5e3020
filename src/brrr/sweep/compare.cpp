#include "brrr/sweep/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"

namespace brrr::sweep {
namespace {

// A number printed with all its digits, when it is printed at all.
struct Exact {
  double value;
};
std::string to_text(const Exact& exact) { return fmt::format("{:.17g}", exact.value); }

// Elementwise, index by index: broadcasts the inputs and applies the scalar definition.
Tensor scalar_oracle(const Case& c, const TensorType& type) {
  std::vector<std::vector<double>> values;
  for (const Tensor& input : c.inputs) {
    values.push_back(
        make_view(input, expand_layout(input.layout(), type.shape)).to_vector<double>());
  }
  Tensor result = empty(type.shape, DType::f64);
  std::vector<double> arguments(values.size());
  for (int64_t i = 0; i < result.numel(); ++i) {
    for (size_t input = 0; input < values.size(); ++input)
      arguments[input] = values[input][static_cast<size_t>(i)];
    result.data<double>()[i] = c.op->scalar(arguments.data(), c.attrs);
  }
  return result;
}

// Rounds an f64 result to the dtype that the op promises, the way a kernel stores it.
Tensor rounded(const Tensor& x, DType dtype) {
  Tensor result = empty(x.shape(), dtype);
  int64_t next = 0;
  for_each_element(x.layout(), [&](int64_t i) {
    const bool is_int =
        is_integer(dtype) && (x.dtype() == DType::i64 || std::isfinite(load_float(x, i)));
    if (is_int) {
      store_int(result, next++, load_int(x, i));
    } else {
      store_float(result, next++, load_float(x, i));
    }
  });
  return result;
}

}  // namespace

std::string to_text(const Case& c) {
  std::string text = std::string(c.op->name) + " sample " + std::to_string(c.index) + " (";
  for (const Tensor& input : c.inputs) text += to_text(input.type()) + " ";
  return text + to_text(c.attrs) + ")";
}

Tensors run_case(const Case& c) { return call_op(*c.op, c.inputs, c.attrs); }

bool is_large(const Case& c) { return !c.inputs.empty() && c.inputs[0].numel() > 5000; }

std::vector<Case> cases_of(const OpDef& op, DType dtype) {
  std::vector<Case> cases;
  for (const Sample& sample : op.samples()) {
    Case c{&op, static_cast<int>(cases.size()), {}, sample.attrs, dtype};
    for (const Tensor& input : sample.inputs) {
      c.takes_dtype.push_back(input.dtype() == DType::f64);
      c.inputs.push_back(c.takes_dtype.back() ? cast(input, dtype) : input);
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

Tensors oracle(const Case& c) {
  NoGrad no_tape;
  SmallVector<TypeRef, 4> types;
  for (const Tensor& input : c.inputs) types.push_back({&input.shape(), input.dtype(), false});
  const TensorTypes promised = c.op->infer({*c.op, types, c.attrs});
  Tensors inputs;
  for (int i = 0; i < c.inputs.size(); ++i) {
    // Functions that turn integers into floats are defined on the numbers, not on wrapping integers.
    const Tensor& input = c.inputs[i];
    const bool as_number = is_float(input.dtype()) ||
                           (c.takes_dtype[static_cast<size_t>(i)] && is_float(promised[0].dtype));
    inputs.push_back(as_number ? cast(input, DType::f64) : input);
  }
  Tensors results;
  if (c.op->scalar) {
    results.push_back(scalar_oracle(c, promised[0]));
  } else if (c.op->view) {
    results.push_back(make_view(inputs[0], c.op->view(inputs[0].layout(), c.attrs)));
  } else {
    results = c.op->compose ? c.op->compose({inputs, c.attrs}) : c.op->reference({inputs, c.attrs});
  }
  for (int i = 0; i < results.size(); ++i) results[i] = rounded(results[i], promised[i].dtype);
  return results;
}

double tolerance_of(DType dtype) {
  if (!is_float(dtype)) return 0;
  return (dtype == DType::f64 ? 64 : dtype == DType::f32 ? 16 : 2) * finfo(dtype).eps;
}

void require_close(const Case& c, std::string_view what, const Tensor& got, const Tensor& expected,
                   double tolerance) {
  check(got.shape() == expected.shape() && got.dtype() == expected.dtype(), c, ": ", what, " is ",
        describe(got), " and should be ", describe(expected));
  const std::vector<double> a = got.to_vector<double>(), b = expected.to_vector<double>();
  double scale = 0;
  for (double value : b) scale = std::isfinite(value) ? std::max(scale, std::fabs(value)) : scale;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    check(same || std::fabs(a[i] - b[i]) <= tolerance * scale, c, ": ", what,
          " differs at element ", i, ": got ", Exact{a[i]}, ", expected ", Exact{b[i]},
          ", allowed ", Exact{tolerance * scale});
  }
}

void require_same_bits(const Case& c, std::string_view what, const Tensor& got,
                       const Tensor& expected) {
  const Tensor a = contiguous(got), b = contiguous(expected);
  check(a.shape() == b.shape() && a.dtype() == b.dtype(), c, ": ", what, " is ", describe(a),
        " and should be ", describe(b));
  if (is_packed(a.dtype())) {  // the unused half of a last byte may hold anything
    return require_close(c, what, a, b, 0);
  }
  const std::byte* bytes_a = a.storage().data() + storage_bytes(a.dtype(), a.offset());
  const std::byte* bytes_b = b.storage().data() + storage_bytes(b.dtype(), b.offset());
  check(std::memcmp(bytes_a, bytes_b, static_cast<size_t>(a.bytes().value())) == 0, c, ": ", what,
        " changes the bits");
}

bool is_differentiable(const OpDef& op) {
  return op.grad || (op.compose && op.kind != OpKind::random);
}

}  // namespace brrr::sweep
