// The tensor: a cheap handle to a layout over shared storage, with what gradients need to know.
// Ops on tensors are free functions in brrr/ops; this file knows sizes, types, elements and ownership.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "brrr/base/small_vector.h"
#include "brrr/base/units.h"
#include "brrr/tensor/dtype.h"
#include "brrr/tensor/element.h"
#include "brrr/tensor/layout.h"
#include "brrr/tensor/storage.h"

namespace brrr {

class Tensor;
using Tensors = SmallVector<Tensor, 4>;

// Shape and dtype of a value. `weak` marks a host number met in an expression: it takes part in type
// promotion by its category only, so that `bf16_tensor * 0.1` stays bf16.
struct TensorType {
  Shape shape;
  DType dtype = DType::f32;
  bool weak = false;
  bool operator==(const TensorType&) const = default;
};
std::string to_text(const TensorType& type);  // "f32[2, 3]"

// Where the gradient of a value is put: shared by the value and by the tape that will deliver it.
struct GradSlot final : RefCounted {
  Ref<struct TensorBody> grad;
  ~GradSlot() override;
};

// How a differentiable value came about: a record on the tape (graph/tape.h).
class GradSource : public RefCounted {
 public:
  virtual void keep_output_grad(int output, Ref<GradSlot> slot) = 0;
};

// What a handle points to.
struct TensorBody final : RefCounted {
  Layout layout;
  DType dtype = DType::f32;
  bool weak = false;
  int source_output = 0;    // which output of `source` this is
  Ref<Storage> storage;     // none in a husk: shape and dtype known, elements not kept
  Ref<GradSource> source;   // the op that made it, when gradients flow through it
  Ref<GradSlot> grad_slot;  // a leaf that wants its gradient, or a value that retains it
};

class Tensor {
 public:
  Tensor() = default;  // undefined: no shape, no dtype
  explicit Tensor(Ref<TensorBody> body) : body_(std::move(body)) {}

  bool defined() const { return static_cast<bool>(body_); }
  const Layout& layout() const { return body().layout; }
  const Shape& shape() const { return body().layout.shape; }
  const Strides& strides() const { return body().layout.strides; }
  int64_t offset() const { return body().layout.offset; }
  int rank() const { return body().layout.rank(); }
  int64_t dim(int64_t axis) const;  // size of an axis; negative axes count from the end
  int64_t numel() const { return brrr::numel(shape()); }
  DType dtype() const { return body().dtype; }
  TensorType type() const { return {shape(), dtype(), body().weak}; }
  Device device() const { return storage().device(); }
  Bytes bytes() const { return Bytes(storage_bytes(dtype(), numel())); }
  bool is_contiguous() const { return layout().is_contiguous(); }

  // The first element; T must be the C++ type of the dtype. Strides say where the others are.
  template <StorageType T>
  T* data() const {
    require_data(dtype_of<T>());
    return reinterpret_cast<T*>(storage().data()) + offset();
  }
  // The value of a tensor that holds exactly one element, converted to T.
  template <typename T>
  T item() const {
    require_one_element();
    return element_as<T>(offset());
  }
  // All elements in row-major order, converted to T.
  template <typename T>
  std::vector<T> to_vector() const;

  // x[i]: the i-th slice along the first axis, a view. Defined in ops/view/views.cpp.
  Tensor operator[](int64_t index) const;

  // Writes into the elements, seen through every view. Defined in ops/create/copy.cpp.
  void copy_from(const Tensor& source) const;  // broadcasts and converts
  void fill(double value) const;

  // Gradients. A leaf that wants one gets it in grad() after backward().
  const Tensor& require_grad() const;  // makes this a leaf that wants its gradient
  bool requires_grad() const;          // a wanting leaf, or computed from one
  bool is_leaf() const { return !body().source; }
  void retain_grad() const;  // keep the gradient of a value that is not a leaf
  Tensor grad() const;       // undefined when there is none
  void clear_grad() const;   // drops the gradient and frees its bytes
  Tensor detach() const;     // the same elements, cut off from the tape
  void backward() const;     // defined in autodiff/grad.cpp

  void set_category(Category category) const { storage().set_category(category); }

  TensorBody& body() const {
    if (!body_) [[unlikely]]
      fail_undefined();
    return *body_;
  }
  const Ref<TensorBody>& body_ref() const { return body_; }
  Storage& storage() const {
    if (!body().storage) [[unlikely]]
      fail_husk();
    return *body_->storage;
  }

 private:
  [[noreturn]] static void fail_undefined();
  [[noreturn]] void fail_husk() const;
  void require_data(DType wanted) const;
  void require_one_element() const;
  template <typename T>
  T element_as(int64_t element) const;  // by its position in storage

  Ref<TensorBody> body_;
};

// A tensor over new, uninitialised bytes.
Tensor empty(const Shape& shape, DType dtype = DType::f32, Device device = Device::cpu());
// A tensor over bytes owned by somebody else, who must keep them alive. Rejects misaligned addresses.
Tensor borrow_memory(void* memory, const Shape& shape, DType dtype);
// Another layout over the storage of x. The layout must stay inside it.
Tensor make_view(const Tensor& x, const Layout& layout);
// Shape and dtype without elements.
Tensor make_husk(const TensorType& type);

bool shares_storage(const Tensor& a, const Tensor& b);

// Gradient recording is on by default, per thread.
bool grad_enabled();
class NoGrad {  // NoGrad scope;  records nothing while it lives
 public:
  NoGrad() : NoGrad(false) {}
  explicit NoGrad(bool record);  // true: records inside an outer NoGrad again
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool outer_;
};

std::string to_text(const Tensor& x);  // values, elided in the middle, then shape, dtype and device

// The type of a tensor for a message, put into words only when the message is needed.
struct Described {
  const Tensor& x;
  operator std::string() const { return to_text(x.type()); }  // NOLINT: it stands for the text
};
inline Described describe(const Tensor& x) { return {x}; }
inline std::string to_text(const Described& described) { return described; }

// One element by its position in storage, converted. The slow, general way: for tests and printing.
double load_float(const Tensor& x, int64_t element);
int64_t load_int(const Tensor& x, int64_t element);  // u64 wraps; load_uint has its values
uint64_t load_uint(const Tensor& x, int64_t element);
void store_float(const Tensor& x, int64_t element, double value);
void store_int(const Tensor& x, int64_t element, int64_t value);
void store_uint(const Tensor& x, int64_t element, uint64_t value);

// Calls visit(position in storage) for every element in row-major order.
template <typename Visit>
void for_each_element(const Layout& layout, Visit&& visit) {
  const int64_t count = numel(layout.shape);
  Shape index(layout.rank(), 0);
  int64_t position = layout.offset;
  for (int64_t i = 0; i < count; ++i) {
    visit(position);
    for (int axis = layout.rank() - 1; axis >= 0; --axis) {
      position += layout.strides[axis];
      if (++index[axis] < layout.shape[axis]) break;
      position -= layout.strides[axis] * layout.shape[axis];
      index[axis] = 0;
    }
  }
}

template <typename T>
T Tensor::element_as(int64_t element) const {
  switch (compute_type(dtype())) {
    case ComputeType::i64: return convert_element<T>(load_int(*this, element));
    case ComputeType::u64: return convert_element<T>(load_uint(*this, element));
    case ComputeType::f32:
    case ComputeType::f64: break;
  }
  return convert_element<T>(load_float(*this, element));
}

template <typename T>
std::vector<T> Tensor::to_vector() const {
  std::vector<T> values;
  values.reserve(static_cast<size_t>(numel()));
  for_each_element(layout(), [&](int64_t element) { values.push_back(element_as<T>(element)); });
  return values;
}

}  // namespace brrr
