// Errors that say what went wrong and what to do about it.
// `check` guards against mistakes of the caller and throws Error; `invariant` guards promises that
// brrr makes to itself and throws InternalError, which is always a bug of ours.
#pragma once

#include <concepts>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace brrr {

// A mistake in the call: wrong shape, dtype, axis, index, file or setting.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A broken promise of brrr itself.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

std::string to_text(double value);

// Appends one part of a message. Types of ours take part by a `std::string to_text(const T&)`.
template <typename Part>
void append_text(std::string& out, const Part& part) {
  if constexpr (std::convertible_to<Part, std::string_view>) {
    out += std::string_view(part);
  } else if constexpr (std::same_as<Part, bool>) {
    out += part ? "true" : "false";
  } else if constexpr (std::same_as<Part, char>) {
    out += part;
  } else if constexpr (std::integral<Part>) {
    out += std::to_string(part);
  } else {
    out += to_text(part);
  }
}

template <typename... Parts>
std::string join_text(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

template <typename... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const Parts&... parts) {
  throw Error(join_text(parts...));
}

// check(a == b, "matmul: inner sizes differ: ", a, " and ", b, "; transpose one of them?");
template <typename... Parts>
void check(bool holds, const Parts&... parts) {
  if (!holds) [[unlikely]]
    fail(parts...);
}

[[noreturn]] void fail_invariant(const std::string& message, std::source_location where);

// Remembers where the promise was written down, so that a report can name the place.
struct Promise {
  bool holds;
  std::source_location where;
  Promise(bool kept, std::source_location location = std::source_location::current())  // NOLINT
      : holds(kept), where(location) {}
};

template <typename... Parts>
void invariant(Promise promise, const Parts&... parts) {
  if (!promise.holds) [[unlikely]]
    fail_invariant(join_text(parts...), promise.where);
}

}  // namespace brrr
