// Shared ownership with the count inside the object: one pointer wide, one allocation an object.
#pragma once

#include <atomic>
#include <utility>

namespace brrr {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;

  void retain() const { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    // The last owner need not tell anybody: a plain load instead of a locked subtraction.
    const bool last = is_unique() || count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    if (last) destroy();
  }
  bool is_unique() const { return count_.load(std::memory_order_acquire) == 1; }

 protected:
  // An object that does not come from plain `new` says here how it goes.
  virtual void destroy() const { delete this; }

 private:
  mutable std::atomic<int> count_{1};  // whoever makes an object owns it: Ref::adopt
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {  // shares an object that has an owner
    if (object_) object_->retain();
  }
  static Ref adopt(T* fresh) {  // takes over an object just made
    Ref ref;
    ref.object_ = fresh;
    return ref;
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <typename U>
  Ref(Ref<U> other)
      : object_(other.leak()) {}  // NOLINT: a Ref to a derived object is one to its base
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_) object_->release();
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref& other) const { return object_ == other.object_; }

  // Gives up the reference without dropping the count.
  T* leak() { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

template <typename T, typename... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>::adopt(new T(std::forward<Args>(args)...));
}

}  // namespace brrr
