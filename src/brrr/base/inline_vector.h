// A vector whose elements live inside the object, up to a fixed capacity: shapes, strides, axes.
// No allocation, trivially copied, cheap to compare.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <string>

#include "brrr/base/error.h"

namespace brrr {

template <typename T, int kCapacity>
class InlineVector {
 public:
  constexpr InlineVector() = default;
  InlineVector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  explicit InlineVector(std::span<const T> values) { assign(values.begin(), values.end()); }
  InlineVector(int count, T value) {
    resize(count);
    std::fill(begin(), end(), value);
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return values_.data(); }
  T* end() { return values_.data() + size_; }
  const T* begin() const { return values_.data(); }
  const T* end() const { return values_.data() + size_; }
  T& operator[](int i) { return values_[static_cast<size_t>(i)]; }
  const T& operator[](int i) const { return values_[static_cast<size_t>(i)]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }

  void push_back(T value) {
    require_capacity(size_ + 1);
    values_[static_cast<size_t>(size_++)] = value;
  }
  void pop_back() { --size_; }
  void insert(int position, T value) {
    push_back(value);
    std::rotate(begin() + position, end() - 1, end());
  }
  void erase(int position) {
    std::move(begin() + position + 1, end(), begin() + position);
    --size_;
  }
  void resize(int count) {
    require_capacity(count);
    for (int i = size_; i < count; ++i) values_[static_cast<size_t>(i)] = T{};
    size_ = count;
  }
  bool contains(T value) const { return std::find(begin(), end(), value) != end(); }
  operator std::span<const T>() const { return {begin(), static_cast<size_t>(size_)}; }

  bool operator==(const InlineVector& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  template <typename Iterator>
  void assign(Iterator first, Iterator last) {
    require_capacity(static_cast<long>(last - first));
    size_ = static_cast<int>(last - first);
    std::copy(first, last, values_.begin());
  }
  void require_capacity(long count) const {
    check(count <= kCapacity, "too many dimensions: ", count, "; brrr allows at most ", kCapacity);
  }

  int size_ = 0;
  std::array<T, kCapacity> values_{};
};

template <typename T, int kCapacity>
std::string to_text(const InlineVector<T, kCapacity>& values) {
  std::string out = "[";
  for (int i = 0; i < values.size(); ++i) {
    if (i > 0) out += ", ";
    append_text(out, values[i]);
  }
  return out + "]";
}

}  // namespace brrr
