// A vector that keeps its first few elements inside the object and moves to the heap beyond them:
// the operands of an op, nearly always fewer than five.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <utility>

namespace brrr {

template <typename T, int kInline>
class SmallVector {
 public:
  SmallVector() = default;
  SmallVector(std::initializer_list<T> values) {
    reserve(static_cast<int>(values.size()));
    for (const T& value : values) push_back(value);
  }
  explicit SmallVector(std::span<const T> values) {
    reserve(static_cast<int>(values.size()));
    for (const T& value : values) push_back(value);
  }
  explicit SmallVector(int count) { resize(count); }
  SmallVector(const SmallVector& other) : SmallVector(std::span<const T>(other)) {}
  SmallVector(SmallVector&& other) noexcept { steal(other); }
  SmallVector& operator=(SmallVector other) noexcept {
    clear();
    steal(other);
    return *this;
  }
  ~SmallVector() { clear(); }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](int i) { return data_[i]; }
  const T& operator[](int i) const { return data_[i]; }
  operator std::span<const T>() const { return {data_, static_cast<size_t>(size_)}; }
  operator std::span<T>() { return {data_, static_cast<size_t>(size_)}; }

  void push_back(T value) {
    if (size_ == capacity_) reserve(2 * capacity_);
    std::construct_at(data_ + size_, std::move(value));
    ++size_;
  }
  void resize(int count) {
    reserve(count);
    while (size_ < count) std::construct_at(data_ + size_++);
    while (size_ > count) std::destroy_at(data_ + --size_);
  }
  void reserve(int count) {
    if (count <= capacity_) return;
    T* grown = std::allocator<T>().allocate(static_cast<size_t>(count));
    std::uninitialized_move_n(data_, size_, grown);
    std::destroy_n(data_, size_);
    free_heap();
    data_ = grown;
    capacity_ = count;
  }
  void clear() {
    std::destroy_n(data_, size_);
    free_heap();
    size_ = 0;
    data_ = inline_data();
    capacity_ = kInline;
  }

 private:
  T* inline_data() { return reinterpret_cast<T*>(inline_bytes_); }
  void free_heap() {
    if (data_ != inline_data())
      std::allocator<T>().deallocate(data_, static_cast<size_t>(capacity_));
  }
  // Takes the elements of `other`; this object must be empty.
  void steal(SmallVector& other) {
    if (other.data_ != other.inline_data()) {
      data_ = std::exchange(other.data_, other.inline_data());
      capacity_ = std::exchange(other.capacity_, kInline);
    } else {
      std::uninitialized_move_n(other.data_, other.size_, data_);
      std::destroy_n(other.data_, other.size_);
    }
    size_ = std::exchange(other.size_, 0);
  }

  alignas(T) std::byte inline_bytes_[kInline * sizeof(T)];  // NOLINT: T may be a pointer
  T* data_ = inline_data();
  int size_ = 0;
  int capacity_ = kInline;
};

}  // namespace brrr
