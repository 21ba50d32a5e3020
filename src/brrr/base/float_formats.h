// The small floating-point storage types: f16, bf16, f8e4m3, f8e5m2. They hold bits and convert;
// arithmetic is done in float: kernels compute in f32, f64 or i64 alone.
//
// One idea: drop the sign and an IEEE number's bits, read as an integer, are ordered like its
// value. So encoding is integer work on the magnitude: move the exponent to the target's bias, add
// half a unit in the last place (ties to even), shift, and clamp to the largest code. Only target
// subnormals need another path, and there one floating-point addition does the rounding. All paths
// are computed and selected, never branched on, so that g++ vectorises loops of conversions.
//
//            exponent mantissa   max        overflow of a finite value   infinite input
//   f16         5       10     65504        infinity                     infinity
//   bf16        8        7     3.3895e38    infinity                     infinity
//   f8e4m3      4        3     448          +-448                        +-448 (has no infinity)
//   f8e5m2      5        2     57344        +-57344                      infinity
//
// f8e4m3 is the "fn" format: exponent 1111 holds numbers, and only 0x7f and 0xff are NaN. Infinity
// becomes +-448 as with NVIDIA's satfinite conversions (PyTorch's cast gives NaN there).
// A NaN stays a NaN of the same sign, made quiet, with the payload bits that fit.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "brrr/base/host_device.h"

namespace brrr {

enum class Overflow {
  to_infinity,             // IEEE 754
  saturate_keep_infinity,  // finite values stop at max; infinity stays infinity
  saturate_no_infinity,    // no code for infinity; everything that is not NaN stops at max
};

namespace float_formats {

// What the encoder and decoder have to know about the wide side, float or double.
template <typename Wide>
struct WideFormat {
  using Bits = std::conditional_t<sizeof(Wide) == 4, std::uint32_t, std::uint64_t>;
  static constexpr int kMantissaBits = std::numeric_limits<Wide>::digits - 1;
  static constexpr int kBias = std::numeric_limits<Wide>::max_exponent - 1;
  static constexpr int kSignShift = static_cast<int>(sizeof(Wide)) * 8 - 1;
  static constexpr Bits kOne = 1;
  static constexpr Bits kMagnitudeMask = (kOne << kSignShift) - 1;
  static constexpr Bits kInfinity = kMagnitudeMask - ((kOne << kMantissaBits) - 1);

  // The bits of 2^exponent.
  static constexpr BRRR_HD Bits power_of_two(int exponent) {
    return static_cast<Bits>(exponent + kBias) << kMantissaBits;
  }
};

// __builtin_bit_cast and not std::bit_cast, which device code may not call.
template <typename Wide>
constexpr BRRR_HD typename WideFormat<Wide>::Bits to_bits(Wide value) {
  return __builtin_bit_cast(typename WideFormat<Wide>::Bits, value);
}

// when ? a : b as masks. Given ?: around a floating-point operation g++ moves the operation into a
// branch, and then may not vectorise the loop since the operation could trap.
template <typename Bits>
constexpr BRRR_HD Bits select(bool when, Bits a, Bits b) {
  const Bits mask = Bits{0} - static_cast<Bits>(when);
  return (a & mask) | (b & ~mask);
}

}  // namespace float_formats

template <int ExponentBits, int MantissaBits, Overflow overflow>
struct SmallFloat {
  static_assert(ExponentBits >= 2 && ExponentBits <= 8 && MantissaBits >= 1);
  static_assert(1 + ExponentBits + MantissaBits == 8 || 1 + ExponentBits + MantissaBits == 16);
  using Bits =
      std::conditional_t<1 + ExponentBits + MantissaBits == 8, std::uint8_t, std::uint16_t>;

  static constexpr int kExponentBits = ExponentBits;
  static constexpr int kMantissaBits = MantissaBits;
  static constexpr int kSignShift = ExponentBits + MantissaBits;
  static constexpr int kBias = (1 << (ExponentBits - 1)) - 1;
  static constexpr int kMinExponent = 1 - kBias;  // of the smallest normal number
  static constexpr bool kHasInfinity = overflow != Overflow::saturate_no_infinity;

  // Codes of magnitudes, sign bit zero.
  static constexpr Bits kMagnitudeMask = static_cast<Bits>((1 << kSignShift) - 1);
  static constexpr Bits kTopExponent =
      static_cast<Bits>(kMagnitudeMask - ((1 << MantissaBits) - 1));
  static constexpr Bits kInfinityCode = kTopExponent;  // meaningful where kHasInfinity
  static constexpr Bits kMaxCode =
      static_cast<Bits>(kHasInfinity ? kTopExponent - 1 : kMagnitudeMask - 1);
  static constexpr Bits kLastNumber = kHasInfinity ? kInfinityCode : kMaxCode;  // above: NaN
  static constexpr Bits kNanCode =
      static_cast<Bits>(kHasInfinity ? kTopExponent | (1 << (MantissaBits - 1)) : kMagnitudeMask);

  Bits bits;

  SmallFloat() = default;  // trivial, so that arrays of it may be __shared__ or left unfilled
  explicit constexpr BRRR_HD SmallFloat(float value) : bits(encode(value)) {}
  explicit constexpr BRRR_HD SmallFloat(double value) : bits(encode(value)) {}
  template <std::integral Integer>
  explicit SmallFloat(Integer) = delete;  // a number or its bits? say from_float or from_bits

  [[nodiscard]] static constexpr BRRR_HD SmallFloat from_bits(Bits bits) {
    SmallFloat result{};
    result.bits = bits;
    return result;
  }
  [[nodiscard]] static constexpr BRRR_HD SmallFloat from_float(float value) {
    return from_bits(encode(value));
  }
  // Rounds once, straight from the double: going through float could round a near-tie twice.
  [[nodiscard]] static constexpr BRRR_HD SmallFloat from_double(double value) {
    return from_bits(encode(value));
  }

  // Exact for every pattern. A signalling NaN becomes quiet.
  [[nodiscard]] constexpr BRRR_HD float to_float() const {
    return __builtin_bit_cast(float, decode(bits));
  }
  explicit constexpr BRRR_HD operator float() const { return to_float(); }
  explicit constexpr BRRR_HD operator double() const { return static_cast<double>(to_float()); }

  [[nodiscard]] constexpr BRRR_HD bool is_nan() const {
    return (bits & kMagnitudeMask) > kLastNumber;
  }
  [[nodiscard]] constexpr BRRR_HD bool is_infinite() const {
    return kHasInfinity && (bits & kMagnitudeMask) == kInfinityCode;
  }
  [[nodiscard]] constexpr BRRR_HD bool is_finite() const {
    return (bits & kMagnitudeMask) <= kMaxCode;
  }

  // As for float: NaN differs from everything and -0 equals 0. Compare `bits` for identity.
  friend constexpr BRRR_HD bool operator==(SmallFloat a, SmallFloat b) {
    bool both_zero = ((a.bits | b.bits) & kMagnitudeMask) == 0;
    return both_zero || (a.bits == b.bits && !a.is_nan());
  }

 private:
  template <typename Wide>
  static constexpr BRRR_HD Bits encode(Wide value) {
    using W = float_formats::WideFormat<Wide>;
    using WideBits = typename W::Bits;
    constexpr int kShift = W::kMantissaBits - MantissaBits;
    const WideBits all = float_formats::to_bits(value);
    const WideBits magnitude = all & W::kMagnitudeMask;

    // Normal targets. A carry out of the mantissa goes up into the exponent, as it should.
    constexpr WideBits kRebias = static_cast<WideBits>(W::kBias - kBias) << W::kMantissaBits;
    constexpr WideBits kBelowHalf = (W::kOne << (kShift - 1)) - 1;
    const WideBits last_kept = (magnitude >> kShift) & 1;
    WideBits code = (magnitude - kRebias + kBelowHalf + last_kept) >> kShift;

    if constexpr (kBias != W::kBias) {  // with equal biases subnormals round like normal numbers
      // Subnormal targets are multiples of 2^(kMinExponent - MantissaBits). Adding the power of two
      // whose last place is worth just that rounds the sum to such a multiple, which then stands in
      // its low bits. The clamp keeps the unused sums of larger inputs (and NaN) finite.
      constexpr WideBits kSmallestNormal = W::power_of_two(kMinExponent);
      constexpr WideBits kAnchor = W::power_of_two(kMinExponent - MantissaBits + W::kMantissaBits);
      const WideBits clamped = magnitude < kSmallestNormal ? magnitude : kSmallestNormal;
      const Wide sum = __builtin_bit_cast(Wide, clamped) + __builtin_bit_cast(Wide, kAnchor);
      const WideBits subnormal_code = float_formats::to_bits(sum) - kAnchor;
      code = float_formats::select(magnitude < kSmallestNormal, subnormal_code, code);
    }

    constexpr WideBits kLargest = overflow == Overflow::to_infinity ? kInfinityCode : kMaxCode;
    code = code < kLargest ? code : kLargest;
    if constexpr (overflow == Overflow::saturate_keep_infinity) {
      code = float_formats::select(magnitude == W::kInfinity, WideBits{kInfinityCode}, code);
    }

    WideBits nan_code = kNanCode;
    if constexpr (kHasInfinity) nan_code |= (magnitude >> kShift) & ((1 << MantissaBits) - 1);
    code = float_formats::select(magnitude > W::kInfinity, nan_code, code);

    const WideBits sign = (all >> W::kSignShift) << kSignShift;
    return static_cast<Bits>(code | sign);
  }

  static constexpr BRRR_HD std::uint32_t decode(Bits bits) {
    using W = float_formats::WideFormat<float>;
    constexpr int kShift = W::kMantissaBits - MantissaBits;
    constexpr std::uint32_t kQuietBit = 1u << (W::kMantissaBits - 1);
    const std::uint32_t code = bits & kMagnitudeMask;
    const std::uint32_t sign = (static_cast<std::uint32_t>(bits) >> kSignShift) << W::kSignShift;

    constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(W::kBias - kBias)
                                      << W::kMantissaBits;
    const std::uint32_t shifted = code << kShift;
    std::uint32_t wide = shifted + kRebias;

    if constexpr (kBias != W::kBias) {
      // A subnormal 0.f * 2^kMinExponent: read it as 1.f * 2^kMinExponent and subtract the 1. The
      // subtraction is exact and always finite; its result is used for exponent 0 only.
      constexpr std::uint32_t kOneUnit = W::power_of_two(kMinExponent);
      const std::uint32_t mantissa = shifted & ((1u << W::kMantissaBits) - 1);
      const float with_one = __builtin_bit_cast(float, mantissa | kOneUnit);
      const float subnormal = with_one - __builtin_bit_cast(float, kOneUnit);
      wide = float_formats::select(code < (1u << MantissaBits), float_formats::to_bits(subnormal),
                                   wide);
    }

    // Infinity and NaN have the top exponent on both sides; the mantissa stays where it is.
    wide |= code > kMaxCode ? W::kInfinity : 0;
    wide |= code > kLastNumber ? kQuietBit : 0;
    return wide | sign;
  }
};

using f16 = SmallFloat<5, 10, Overflow::to_infinity>;
using bf16 = SmallFloat<8, 7, Overflow::to_infinity>;
using f8e4m3 = SmallFloat<4, 3, Overflow::saturate_no_infinity>;
using f8e5m2 = SmallFloat<5, 2, Overflow::saturate_keep_infinity>;

static_assert(sizeof(f16) == 2 && sizeof(bf16) == 2 && sizeof(f8e4m3) == 1 && sizeof(f8e5m2) == 1);
static_assert(std::is_trivial_v<f16> && std::is_trivial_v<f8e4m3>);

// The finfo of float, double and the small formats, all as exact doubles.
template <typename T>
struct FloatInfo;

template <std::floating_point T>
struct FloatInfo<T> {
  using Limits = std::numeric_limits<T>;
  static constexpr double max = Limits::max();
  static constexpr double lowest = Limits::lowest();
  static constexpr double tiny = Limits::min();  // smallest normal
  static constexpr double smallest_subnormal = Limits::denorm_min();
  static constexpr double eps = Limits::epsilon();  // from 1 to the next number
  static constexpr bool has_infinity = true;
  static constexpr int mantissa_bits = Limits::digits - 1;
  static constexpr int exponent_bits = static_cast<int>(sizeof(T)) * 8 - Limits::digits;
};

template <int ExponentBits, int MantissaBits, Overflow overflow>
struct FloatInfo<SmallFloat<ExponentBits, MantissaBits, overflow>> {
  using T = SmallFloat<ExponentBits, MantissaBits, overflow>;
  static constexpr double max = T::from_bits(T::kMaxCode).to_float();
  static constexpr double lowest = -max;
  static constexpr double tiny = T::from_bits(1 << MantissaBits).to_float();
  static constexpr double smallest_subnormal = T::from_bits(1).to_float();
  static constexpr double eps = 1.0 / (1 << MantissaBits);
  static constexpr bool has_infinity = T::kHasInfinity;
  static constexpr int mantissa_bits = MantissaBits;
  static constexpr int exponent_bits = ExponentBits;
};

template <typename T>
concept SmallFloatType = std::same_as<T, f16> || std::same_as<T, bf16> || std::same_as<T, f8e4m3> ||
    std::same_as<T, f8e5m2>;

}  // namespace brrr
