#include "brrr/tensor/tensor.h"

#include <algorithm>
#include <utility>

#include "brrr/device/cuda/runtime.h"
#include "brrr/tensor/element.h"

namespace brrr {
namespace {

constinit thread_local bool recording = true;

// Where element `i` of a packed tensor is: two a byte, the even one in the low half.
int shift_of(int64_t element) { return static_cast<int>(element & 1) * 4; }

int64_t load_packed(const std::byte* data, DType dtype, int64_t element) {
  const int nibble = (static_cast<int>(data[element >> 1]) >> shift_of(element)) & 15;
  return dtype == DType::i4 && nibble >= 8 ? nibble - 16 : nibble;
}

void store_packed(std::byte* data, int64_t element, int64_t value) {
  std::byte& pair = data[element >> 1];
  const auto mask = static_cast<std::byte>(15 << shift_of(element));
  pair = (pair & ~mask) | (static_cast<std::byte>((value & 15) << shift_of(element)) & mask);
}

// Floats saturate as they do for every integer dtype; integers wrap.
template <typename T>
int64_t clamp_packed(DType dtype, T value) {
  if constexpr (std::integral<T>) return static_cast<int64_t>(value);
  const IntLimits range = iinfo(dtype);
  return std::clamp(convert_element<int64_t>(value), range.min, static_cast<int64_t>(range.max));
}

void require_no_trace(const Tensor& x, std::string_view what) {
  check(!x.storage().is_traced(), what, ": ", describe(x),
        " has no elements while a function is being compiled, so a program cannot branch on them; ",
        "choose with where(condition, a, b), or return the tensor and look at it outside");
}

// The bytes around one element where the host can reach them: in place on the cpu, else a copy that is
// fetched here and, after a write, sent back. One element at a time is for printing and for item();
// to(x, Device::cpu()) brings a whole tensor.
class HostElement {
 public:
  HostElement(const Tensor& x, int64_t element)
      : device_(x.device()), data_(x.storage().data()), element_(element) {
    check(data_ != nullptr, "a tensor on the ", device_,
          " device has no elements to read or write");
    if (!device_.is_accelerator()) return;
    const int bits = bit_size(x.dtype());
    bytes_ = static_cast<size_t>((bits + 7) / 8);
    data_ += element * bits / 8;
    element_ = bits == 4 ? element & 1 : 0;
    cuda::copy_to_host(copy_, data_, bytes_, cuda::stream(device_.index));
    cuda::wait(cuda::stream(device_.index));
  }
  std::byte* data() { return device_.is_accelerator() ? copy_ : data_; }
  int64_t index() const { return element_; }
  void send_back() {
    if (device_.is_accelerator())
      cuda::copy_to_device(data_, copy_, bytes_, cuda::stream(device_.index));
  }

 private:
  Device device_;
  std::byte* data_;
  int64_t element_;
  size_t bytes_ = 0;
  alignas(8) std::byte copy_[8] = {};
};

template <typename T>
T load_as(const Tensor& x, int64_t element) {
  require_no_trace(x, "reading an element");
  HostElement place(x, element);
  if (is_packed(x.dtype()))
    return static_cast<T>(load_packed(place.data(), x.dtype(), place.index()));
  return visit_dtype(x.dtype(), [&]<typename S>() -> T {
    return convert_element<T>(reinterpret_cast<const S*>(place.data())[place.index()]);
  });
}

template <typename T>
void store_as(const Tensor& x, int64_t element, T value) {
  require_no_trace(x, "writing an element");
  HostElement place(x, element);
  if (is_packed(x.dtype())) {
    store_packed(place.data(), place.index(), clamp_packed(x.dtype(), value));
  } else {
    visit_dtype(x.dtype(), [&]<typename S>() {
      reinterpret_cast<S*>(place.data())[place.index()] = convert_element<S>(value);
    });
  }
  place.send_back();
}

}  // namespace

std::string to_text(const TensorType& type) {
  return to_text(type.dtype) + to_text(type.shape) + (type.weak ? " (number)" : "");
}

void Tensor::fail_undefined() { fail("this tensor is undefined: it was never assigned a value"); }

void Tensor::fail_husk() const {
  throw InternalError("a gradient rule read the elements of " + to_text(type()) +
                      ", which its op does not list in grad_reads");
}

int64_t Tensor::dim(int64_t axis) const { return shape()[normalize_axis(axis, rank(), "dim")]; }

void Tensor::require_data(DType wanted) const {
  require_no_trace(*this, "data");
  check(wanted == dtype(), "data: the tensor holds ", dtype(), ", not ", wanted, "; cast it first");
  check(device().kind == DeviceKind::cpu, "data: the tensor lives on ", device(),
        "; move it to the cpu first");
}

void Tensor::require_one_element() const {
  check(numel() == 1, "item: a tensor of shape ", shape(), " has ", numel(), " elements, not one");
}

const Tensor& Tensor::require_grad() const {
  check(is_float(dtype()), "require_grad: only float tensors have gradients, not ", dtype());
  check(is_leaf(),
        "require_grad: this value was computed from others and takes its gradient from them; ",
        "detach() it first, or retain_grad() to look at its gradient");
  if (!body().grad_slot) body().grad_slot = make_ref<GradSlot>();
  return *this;
}

bool Tensor::requires_grad() const { return body().source || body().grad_slot; }

void Tensor::retain_grad() const {
  check(requires_grad(),
        "retain_grad: no gradient flows through this tensor; call require_grad() on a leaf before");
  if (body().grad_slot) return;
  body().grad_slot = make_ref<GradSlot>();
  body().source->keep_output_grad(body().source_output, body().grad_slot);
}

Tensor Tensor::grad() const { return body().grad_slot ? Tensor(body().grad_slot->grad) : Tensor(); }

void Tensor::clear_grad() const {
  if (body().grad_slot) body().grad_slot->grad = {};
}

GradSlot::~GradSlot() = default;

Tensor Tensor::detach() const { return make_view(*this, layout()); }

Tensor empty(const Shape& shape, DType dtype, Device device) {
  const int64_t count = numel(shape);
  check(count <= (INT64_MAX - 7) / bit_size(dtype), "shape ", shape, " of ", dtype,
        " takes more bytes than a 64-bit number can count");
  auto body = make_ref<TensorBody>();
  body->layout = contiguous_layout(shape);
  body->dtype = dtype;
  body->storage = Storage::allocate(device, storage_bytes(dtype, count));
  return Tensor(std::move(body));
}

Tensor borrow_memory(void* memory, const Shape& shape, DType dtype) {
  const int64_t element_bytes = (bit_size(dtype) + 7) / 8;
  check(reinterpret_cast<uintptr_t>(memory) % static_cast<uintptr_t>(element_bytes) == 0,
        "borrow_memory: the address is not a multiple of the ", element_bytes, " bytes of ", dtype,
        "; copy the bytes to an aligned place first");
  auto body = make_ref<TensorBody>();
  body->layout = contiguous_layout(shape);
  body->dtype = dtype;
  body->storage = Storage::borrow(memory, storage_bytes(dtype, numel(shape)));
  return Tensor(std::move(body));
}

Tensor make_view(const Tensor& x, const Layout& layout) {
  auto body = make_ref<TensorBody>();
  body->layout = layout;
  body->dtype = x.dtype();
  body->weak = x.body().weak;
  body->storage = x.body().storage;
  return Tensor(std::move(body));
}

Tensor make_husk(const TensorType& type) {
  auto body = make_ref<TensorBody>();
  body->layout = contiguous_layout(type.shape);
  body->dtype = type.dtype;
  body->weak = type.weak;
  return Tensor(std::move(body));
}

bool shares_storage(const Tensor& a, const Tensor& b) { return &a.storage() == &b.storage(); }

bool grad_enabled() { return recording; }
NoGrad::NoGrad(bool record) : outer_(std::exchange(recording, record)) {}
NoGrad::~NoGrad() { recording = outer_; }

double load_float(const Tensor& x, int64_t element) { return load_as<double>(x, element); }
int64_t load_int(const Tensor& x, int64_t element) { return load_as<int64_t>(x, element); }
uint64_t load_uint(const Tensor& x, int64_t element) { return load_as<uint64_t>(x, element); }
void store_float(const Tensor& x, int64_t element, double value) { store_as(x, element, value); }
void store_int(const Tensor& x, int64_t element, int64_t value) { store_as(x, element, value); }
void store_uint(const Tensor& x, int64_t element, uint64_t value) { store_as(x, element, value); }

}  // namespace brrr
