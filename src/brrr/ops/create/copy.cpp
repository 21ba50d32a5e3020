#include "brrr/ops/create/copy.h"

#include "brrr/device/cuda/runtime.h"
#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

// Packed dtypes may be copied and cast, nothing else.
constexpr DTypeSet kCopyable = kAnyDType | dtype_set(DType::i4) | dtype_set(DType::u4);

TensorTypes infer_cast(const InferCall& call) {
  return {{call.shape(0), call.attrs.get<DType>("dtype")}};
}

TensorTypes infer_copy(const InferCall& call) { return {{call.shape(0), call.dtype(0)}}; }

Tensors reference_by_element(const Tensor& x, DType dtype) {
  Tensor y = empty(x.shape(), dtype);
  int64_t next = 0;
  for_each_element(x.layout(), [&](int64_t i) {
    if (x.dtype() == DType::u64) {
      store_uint(y, next++, load_uint(x, i));
    } else if (!is_float(x.dtype())) {
      store_int(y, next++, load_int(x, i));
    } else {
      store_float(y, next++, load_float(x, i));
    }
  });
  return {y};
}

std::vector<Sample> cast_samples() {
  std::vector<Sample> samples;
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i32, DType::u8,
                      DType::boolean, DType::i4}) {
    samples.push_back({{sample_values({3, 7}, 40, -6, 6)}, {{"dtype", dtype}}});
  }
  samples.push_back({{sample_values({0, 2}, 41)}, {{"dtype", DType::f32}}});
  samples.push_back({{sample_values({50, 1000}, 42)}, {{"dtype", DType::bf16}}});
  return samples;
}

constexpr PrecisionRule kAskedFor{.take = Take::stored, .reason = "the model asked for this dtype"};

}  // namespace

const OpDef cast_op{.name = "cast",
                    .formula = "x in another dtype",
                    .kind = OpKind::elementwise,
                    .role = OpRole::cast,
                    .precision = &kAskedFor,
                    .dtypes = kCopyable,
                    .flops_per_element = 0,
                    .infer = infer_cast,
                    .grad = [](const GradCall& call) -> Tensors {
                      return {cast(call.output_grad(0), call.input(0).dtype())};
                    },
                    .reference =
                        [](const ComposeCall& call) {
                          return reference_by_element(call.input(0),
                                                      call.attrs.get<DType>("dtype"));
                        },
                    .cpu = kernels::run_copy,
                    .samples = cast_samples};

const OpDef copy_op{.name = "copy",
                    .formula = "x in new, contiguous storage",
                    .kind = OpKind::elementwise,
                    .role = OpRole::copy,
                    .dtypes = kCopyable,
                    .flops_per_element = 0,
                    .infer = infer_copy,
                    .grad = [](const GradCall& call) -> Tensors { return {call.output_grad(0)}; },
                    .reference =
                        [](const ComposeCall& call) {
                          return reference_by_element(call.input(0), call.input(0).dtype());
                        },
                    .cpu = kernels::run_copy,
                    .samples = samples_any};

Tensor cast(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : call_one(cast_op, {x}, {{"dtype", dtype}});
}

Tensor clone(const Tensor& x) { return call_one(copy_op, {x}); }
Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : clone(x); }

namespace {

// x: contiguous, on another device.
Tensor move_elements(const Tensor& x, Device device) {
  const Tensor y = empty(x.shape(), x.dtype(), device);
  y.body().weak = x.body().weak;
  const auto bytes = static_cast<size_t>(x.bytes().value());
  // A packed view may begin in the middle of a byte; contiguous() of a storage of its own does not.
  const Tensor whole = is_packed(x.dtype()) && x.offset() != 0 ? clone(x) : x;
  const std::byte* from = whole.storage().data() + storage_bytes(x.dtype(), whole.offset());
  if (x.device().kind == DeviceKind::cpu) {
    cuda::copy_to_device(y.storage().data(), from, bytes, cuda::stream(device.index));
  } else if (device.kind == DeviceKind::cpu) {
    const cuda::Stream stream = cuda::stream(x.device().index);
    cuda::copy_to_host(y.storage().data(), from, bytes, stream);
    cuda::wait(stream);
  } else {
    cuda::wait(
        cuda::stream(x.device().index));  // streams of two devices know nothing of each other
    cuda::copy_on_device(y.storage().data(), from, bytes, cuda::stream(device.index));
    cuda::wait(cuda::stream(device.index));
  }
  return y;
}

}  // namespace

Tensor to(const Tensor& x, Device device) {
  if (x.device() == device) return x;
  check(x.device().has_data() || !device.has_data(),
        "to: a tensor on the null device has a shape and a price, ", "but no elements to move to ",
        device);
  if (device.kind == DeviceKind::null) return empty(x.shape(), x.dtype(), device);
  check(!grad_enabled() || !x.requires_grad() || x.is_leaf(), "to: gradients flow through ",
        describe(x), ", and they do not cross from ", x.device(), " to ", device,
        "; move the leaves before they are used, or detach() this one");
  return move_elements(contiguous(x.detach()), device);
}

namespace {

// Layouts of one storage that are not the same: a copy could read what it has already written.
bool may_overlap(const Tensor& a, const Tensor& b) {
  return shares_storage(a, b) && a.layout() != b.layout();
}

void require_untracked(const Tensor& x) {
  check(!grad_enabled() || !x.requires_grad(), "write: gradients flow through ", describe(x),
        ", and a write would cut them; use an op that returns a new tensor, or write under NoGrad");
}

void require_writable(const Tensor& target) {
  require_untracked(target);
  for (int axis = 0; axis < target.rank(); ++axis) {
    check(target.strides()[axis] != 0 || target.shape()[axis] <= 1, "write: ", describe(target),
          " with strides ", target.strides(),
          " shows the same element more than once; clone() it first");
  }
}

}  // namespace

void Tensor::copy_from(const Tensor& source) const {
  require_writable(*this);
  require_untracked(source);
  Tensor values = source.detach();
  if (may_overlap(*this, values)) values = clone(values);
  if (values.shape() != shape())
    values = make_view(values, expand_layout(values.layout(), shape()));
  call_into(copy_op, {&values, 1}, {}, *this);
}

void Tensor::fill(double value) const {
  require_writable(*this);
  Tensor number = full({}, value, {.dtype = DType::f64, .device = device()});
  number = make_view(number, expand_layout(number.layout(), shape()));
  call_into(copy_op, {&number, 1}, {}, *this);
}

}  // namespace brrr
