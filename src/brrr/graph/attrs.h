// The settings of an op call besides its tensors: axes, shapes, numbers. Named, ordered, comparable,
// printable, so that a call can be recorded, compared and read back.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "brrr/base/small_vector.h"
#include "brrr/device/device.h"
#include "brrr/tensor/dtype.h"
#include "brrr/tensor/layout.h"

namespace brrr {

using AttrValue = std::variant<bool, int64_t, double, DType, Device, Axes>;

struct Attr {
  std::string_view name;  // a string literal: it outlives every call
  AttrValue value;
  bool operator==(const Attr&) const = default;
};

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<Attr> entries) : entries_(entries) {}

  void add(const Attr& entry) { entries_.push_back(entry); }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // The value of an attribute that the op promises to have.
  template <typename T>
  const T& get(std::string_view name) const {
    const AttrValue* value = find(name);
    invariant(value && std::holds_alternative<T>(*value), "attribute ", name,
              " is missing or of another type");
    return std::get<T>(*value);
  }
  int64_t integer(std::string_view name) const { return get<int64_t>(name); }
  double number(std::string_view name) const { return get<double>(name); }
  bool flag(std::string_view name) const { return get<bool>(name); }
  const Axes& list(std::string_view name) const { return get<Axes>(name); }

  int size() const { return entries_.size(); }
  const Attr* begin() const { return entries_.begin(); }
  const Attr* end() const { return entries_.end(); }
  bool operator==(const Attrs& other) const;

 private:
  const AttrValue* find(std::string_view name) const {
    for (const Attr& entry : entries_) {
      if (entry.name == name) return &entry.value;
    }
    return nullptr;
  }
  SmallVector<Attr, 5> entries_;
};

std::string to_text(const Attrs& attrs);  // "axis=1 keep_dims=true"

}  // namespace brrr
