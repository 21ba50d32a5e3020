// Numbers that know their unit: Bytes, Flops, Seconds and the two rates between them. Adding bytes
// to flops does not compile; bytes / (bytes per second) is seconds.
//
// Memory sizes print in binary units (MiB, GiB) and rates in decimal ones (GB/s, as data sheets
// do); a text never mixes the two. Host code only: kernels get plain numbers.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>

namespace brrr {

// A `Number` of some unit. Integer quantities take integers only, so no fraction is lost unseen.
template <typename Unit, typename Number>
class Quantity {
  template <typename Scalar>
  static constexpr bool kFits = std::integral<Scalar> ||
                                (std::floating_point<Scalar> && std::floating_point<Number>);

 public:
  constexpr Quantity() = default;
  template <typename Scalar>
  requires kFits<Scalar>
  explicit constexpr Quantity(Scalar value) : value_(static_cast<Number>(value)) {}

  [[nodiscard]] constexpr Number value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value_ + b.value_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value_ - b.value_);
  }
  friend constexpr Quantity operator-(Quantity a) { return Quantity(-a.value_); }

  template <typename Scalar>
  requires kFits<Scalar>
  friend constexpr Quantity operator*(Quantity a, Scalar times) {
    return Quantity(a.value_ * static_cast<Number>(times));
  }
  template <typename Scalar>
  requires kFits<Scalar>
  friend constexpr Quantity operator*(Scalar times, Quantity a) { return a * times; }
  template <typename Scalar>
  requires kFits<Scalar>
  friend constexpr Quantity operator/(Quantity a, Scalar parts) {  // Bytes round towards zero
    return Quantity(a.value_ / static_cast<Number>(parts));
  }
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;

 private:
  Number value_ = 0;
};

using Bytes = Quantity<struct BytesUnit, std::int64_t>;
// A double, since a whole training run (1e25) is past 2^63. Counts are exact up to 2^53, and far
// beyond for the sizes models have, whose products are multiples of high powers of two.
using Flops = Quantity<struct FlopsUnit, double>;
using Seconds = Quantity<struct SecondsUnit, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondUnit, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondUnit, double>;

constexpr FlopsPerSecond operator/(Flops work, Seconds time) {
  return FlopsPerSecond(work.value() / time.value());
}
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) {
  return Seconds(work.value() / rate.value());
}
constexpr Flops operator*(FlopsPerSecond rate, Seconds time) {
  return Flops(rate.value() * time.value());
}
constexpr BytesPerSecond operator/(Bytes size, Seconds time) {
  return BytesPerSecond(static_cast<double>(size.value()) / time.value());
}
constexpr Seconds operator/(Bytes size, BytesPerSecond rate) {
  return Seconds(static_cast<double>(size.value()) / rate.value());
}

inline namespace literals {

consteval Bytes bytes_literal(unsigned long long count, unsigned long long unit) {
  if (count > std::numeric_limits<std::int64_t>::max() / unit) throw "size does not fit 63 bits";
  return Bytes(count * unit);
}
consteval Bytes operator""_B(unsigned long long n) { return bytes_literal(n, 1); }
consteval Bytes operator""_KiB(unsigned long long n) { return bytes_literal(n, 1ull << 10); }
consteval Bytes operator""_MiB(unsigned long long n) { return bytes_literal(n, 1ull << 20); }
consteval Bytes operator""_GiB(unsigned long long n) { return bytes_literal(n, 1ull << 30); }
consteval Bytes operator""_TiB(unsigned long long n) { return bytes_literal(n, 1ull << 40); }
consteval Bytes operator""_kB(unsigned long long n) { return bytes_literal(n, 1'000); }
consteval Bytes operator""_MB(unsigned long long n) { return bytes_literal(n, 1'000'000); }
consteval Bytes operator""_GB(unsigned long long n) { return bytes_literal(n, 1'000'000'000); }
consteval Bytes operator""_TB(unsigned long long n) { return bytes_literal(n, 1'000'000'000'000); }

}  // namespace literals

// Exact where four digits allow it ("496 B", "2304 MiB", "1.5 GiB"), else four significant digits
// of the largest unit ("147.2 MiB").
[[nodiscard]] std::string to_text(Bytes size);
[[nodiscard]] std::string to_text_decimal(Bytes size);   // "2.416 GB"
[[nodiscard]] std::string to_text(Flops work);           // "8.796 TFLOP"
[[nodiscard]] std::string to_text(FlopsPerSecond rate);  // "989.4 TFLOP/s"
[[nodiscard]] std::string to_text(BytesPerSecond rate);  // "3.35 TB/s"
[[nodiscard]] std::string to_text(Seconds time);         // "8.889 ms", "3 min 05 s", "2 h 03 min"
[[nodiscard]] std::string with_commas(std::int64_t number);  // "124,439,808"

}  // namespace brrr
