// What kernels need of the C++ standard library where NVRTC compiles them: it comes without one. Stands for
// <cmath>, <concepts>, <cstdint>, <limits> and <type_traits> there, and is included nowhere else.
#pragma once

#define __builtin_huge_valf() __builtin_bit_cast(float, 0x7f800000u)
#define __builtin_huge_val() __builtin_bit_cast(double, 0x7ff0000000000000ull)
#define __builtin_nanf(text) __builtin_bit_cast(float, 0x7fc00000u)
#define __builtin_nan(text) __builtin_bit_cast(double, 0x7ff8000000000000ull)
#define __builtin_sqrtf(x) ::sqrtf(x)
#define __builtin_sqrt(x) ::sqrt(x)
#define __builtin_fmaf(a, b, c) ::fmaf(a, b, c)
#define __builtin_fma(a, b, c) ::fma(a, b, c)

namespace std {

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long;
static_assert(sizeof(int64_t) == 8);

template <typename A, typename B>
inline constexpr bool is_same_v = false;
template <typename A>
inline constexpr bool is_same_v<A, A> = true;
template <typename A, typename B>
concept same_as = is_same_v<A, B>;

template <typename T, typename... Others>
inline constexpr bool is_one_of = (is_same_v<T, Others> || ...);
template <typename T>
inline constexpr bool is_integral_v =
    is_one_of<T, bool, char, signed char, unsigned char, short, unsigned short, int, unsigned, long,
              unsigned long, long long, unsigned long long>;
template <typename T>
concept integral = is_integral_v<T>;
template <typename T>
concept signed_integral = is_integral_v<T> && T(-1)
< T(0);
template <typename T>
concept unsigned_integral = is_integral_v<T> && !(T(-1) < T(0));
template <typename T>
concept floating_point = is_one_of<T, float, double>;

template <bool condition, typename A, typename B>
struct conditional {
  using type = A;
};
template <typename A, typename B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool condition, typename A, typename B>
using conditional_t = typename conditional<condition, A, B>::type;
template <typename T>
inline constexpr bool is_trivial_v = __is_trivial(T);

template <typename T>
struct numeric_limits {  // of integers
  static constexpr T max() {
    constexpr int bits = 8 * sizeof(T);
    if constexpr (T(-1) < T(0)) return T((((T(1) << (bits - 2)) - 1) << 1) + 1);
    return T(~T(0));
  }
  static constexpr T min() { return T(-1) < T(0) ? T(-max() - 1) : T(0); }
  static constexpr T lowest() { return min(); }
};
template <>
struct numeric_limits<bool> {
  static constexpr bool max() { return true; }
  static constexpr bool min() { return false; }
  static constexpr bool lowest() { return false; }
};
template <>
struct numeric_limits<float> {
  static constexpr int digits = 24, max_exponent = 128;
  static constexpr float max() { return 0x1.fffffep127f; }
  static constexpr float min() { return 0x1p-126f; }
  static constexpr float lowest() { return -max(); }
  static constexpr float infinity() { return __builtin_huge_valf(); }
  static constexpr float denorm_min() { return 0x1p-149f; }
  static constexpr float epsilon() { return 0x1p-23f; }
};
template <>
struct numeric_limits<double> {
  static constexpr int digits = 53, max_exponent = 1024;
  static constexpr double max() { return 0x1.fffffffffffffp1023; }
  static constexpr double min() { return 0x1p-1022; }
  static constexpr double lowest() { return -max(); }
  static constexpr double infinity() { return __builtin_huge_val(); }
  static constexpr double denorm_min() { return 0x0.0000000000001p-1022; }
  static constexpr double epsilon() { return 0x1p-52; }
};

inline float fabs(float x) { return ::fabsf(x); }
inline double fabs(double x) { return ::fabs(x); }
inline float floor(float x) { return ::floorf(x); }
inline double floor(double x) { return ::floor(x); }
inline float ceil(float x) { return ::ceilf(x); }
inline double ceil(double x) { return ::ceil(x); }
inline float nearbyint(float x) { return ::nearbyintf(x); }
inline double nearbyint(double x) { return ::nearbyint(x); }
inline float fmod(float a, float b) { return ::fmodf(a, b); }
inline double fmod(double a, double b) { return ::fmod(a, b); }

}  // namespace std

using std::int16_t;
using std::int32_t;
using std::int64_t;
using std::int8_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;
