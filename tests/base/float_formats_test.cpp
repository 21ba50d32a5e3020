// Every pattern of every format against a slow reference that shares no code with the header: a
// decoder by ldexp and an encoder that searches the sorted table of representable values.
#include "brrr/base/float_formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace brrr {
namespace {

struct FormatFacts {
  int exponent_bits, mantissa_bits;
  bool top_exponent_is_special;  // infinity and NaN, as IEEE; else only the all-ones code is NaN
  bool saturates;
};
template <typename T>
constexpr FormatFacts kFacts{};
template <>
constexpr FormatFacts kFacts<f16>{5, 10, true, false};
template <>
constexpr FormatFacts kFacts<bf16>{8, 7, true, false};
template <>
constexpr FormatFacts kFacts<f8e4m3>{4, 3, false, true};
template <>
constexpr FormatFacts kFacts<f8e5m2>{5, 2, true, true};

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Reference {
 public:
  explicit Reference(const FormatFacts& facts) : facts_(facts) {
    sign_code_ = 1 << (facts.exponent_bits + facts.mantissa_bits);
    for (int code = 0; code < sign_code_; ++code) {
      double value = decode(code);
      if (std::isfinite(value)) table_.push_back({value, code});
    }
    std::sort(table_.begin(), table_.end(), [](auto a, auto b) { return a.value < b.value; });
  }

  int code_count() const { return 2 * sign_code_; }

  double decode(int code) const {
    int mantissa_size = 1 << facts_.mantissa_bits, exponent_size = 1 << facts_.exponent_bits;
    int mantissa = code % mantissa_size;
    int exponent = code / mantissa_size % exponent_size;
    double sign = code / sign_code_ ? -1.0 : 1.0;
    int bias = exponent_size / 2 - 1;
    if (exponent == exponent_size - 1) {
      if (facts_.top_exponent_is_special) return mantissa == 0 ? sign * kInf : kNan;
      if (mantissa == mantissa_size - 1) return kNan;
    }
    double fraction = static_cast<double>(mantissa) / mantissa_size;
    double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias)
                                     : std::ldexp(1.0 + fraction, exponent - bias);
    return sign * magnitude;
  }

  // The code of the nearest value; of two equally near ones the even code. -1 stands for "a NaN".
  int encode(double x) const {
    if (std::isnan(x)) return -1;
    return nearest_magnitude(std::abs(x)) + (std::signbit(x) ? sign_code_ : 0);
  }

  // Every representable magnitude, every midpoint between neighbours, and the doubles and floats
  // next to each. The last midpoint is the one where rounding would leave the finite range.
  std::vector<double> interesting_magnitudes() const {
    std::vector<double> result;
    auto add_with_neighbours = [&](double x) {
      float narrow = static_cast<float>(x);
      result.insert(
          result.end(),
          {x, std::nextafter(x, 0.0), std::nextafter(x, kInf), std::nextafterf(narrow, 0.0f),
           std::nextafterf(narrow, std::numeric_limits<float>::infinity())});
    };
    for (std::size_t i = 0; i < table_.size(); ++i) {
      add_with_neighbours(table_[i].value);
      add_with_neighbours((table_[i].value + value_after(i)) / 2);
    }
    for (double x : {1e-320, 1e-300, 1e-45, 1e300, kInf, kNan}) result.push_back(x);
    return result;
  }

  struct Entry {
    double value;
    int code;
  };
  const std::vector<Entry>& table() const { return table_; }
  double value_after(std::size_t i) const {
    if (i + 1 < table_.size()) return table_[i + 1].value;
    return 2 * table_[i].value - table_[i - 1].value;  // where the next one would be
  }

 private:
  int nearest_magnitude(double x) const {
    const int overflow_code = facts_.saturates ? table_.back().code : table_.back().code + 1;
    if (std::isinf(x)) {
      return facts_.top_exponent_is_special ? table_.back().code + 1 : table_.back().code;
    }
    auto above = std::lower_bound(table_.begin(), table_.end(), x,
                                  [](const Entry& entry, double v) { return entry.value < v; });
    if (above != table_.end() && above->value == x) return above->code;
    std::size_t below = static_cast<std::size_t>(above - table_.begin()) - 1;
    int code_above = above != table_.end() ? above->code : overflow_code;
    double midpoint = (table_[below].value + value_after(below)) / 2;
    if (x != midpoint) return x < midpoint ? table_[below].code : code_above;
    return table_[below].code % 2 == 0 ? table_[below].code : code_above;
  }

  FormatFacts facts_;
  int sign_code_ = 0;
  std::vector<Entry> table_;
};

template <typename T>
class FloatFormats : public testing::Test {
 protected:
  static const Reference& reference() {
    static const Reference instance(kFacts<T>);
    return instance;
  }
  static T code(int bits) { return T::from_bits(static_cast<typename T::Bits>(bits)); }

  // False, with a message, when a conversion and the reference differ.
  static testing::AssertionResult agrees(double x, T got) {
    int want = reference().encode(x);
    bool same = want < 0 ? got.is_nan() && std::isnan(got.to_float()) &&
                               std::signbit(got.to_float()) == std::signbit(x)
                         : got.bits == want;
    if (same) return testing::AssertionSuccess();
    return testing::AssertionFailure() << std::hexfloat << x << " became code " << int{got.bits}
                                       << ", the reference says " << want;
  }
};

struct FormatNames {
  template <typename T>
  static std::string GetName(int) {
    return "e" + std::to_string(T::kExponentBits) + "m" + std::to_string(T::kMantissaBits);
  }
};
using AllFormats = testing::Types<f16, bf16, f8e4m3, f8e5m2>;
TYPED_TEST_SUITE(FloatFormats, AllFormats, FormatNames);

TYPED_TEST(FloatFormats, DecodesEveryPattern) {
  for (int i = 0; i < this->reference().code_count(); ++i) {
    TypeParam x = this->code(i);
    double want = this->reference().decode(i);
    double got = x.to_float();
    ASSERT_EQ(x.is_nan(), std::isnan(want)) << i;
    ASSERT_EQ(x.is_infinite(), std::isinf(want)) << i;
    ASSERT_EQ(x.is_finite(), std::isfinite(want)) << i;
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << i;
    } else {
      ASSERT_EQ(got, want) << i;
    }
    ASSERT_EQ(std::signbit(got), i >= this->reference().code_count() / 2) << i;
  }
}

TYPED_TEST(FloatFormats, RoundTripsEveryPattern) {
  for (int i = 0; i < this->reference().code_count(); ++i) {
    TypeParam x = this->code(i);
    int want = i;
    if (x.is_nan()) want |= TypeParam::kNanCode;  // quiet, same sign and payload
    ASSERT_EQ(TypeParam::from_float(x.to_float()).bits, want);
    ASSERT_EQ(TypeParam::from_double(static_cast<double>(x)).bits, want);
  }
}

TYPED_TEST(FloatFormats, RoundsValuesMidpointsAndTheirNeighboursLikeTheReference) {
  for (double magnitude : this->reference().interesting_magnitudes()) {
    for (double x : {magnitude, -magnitude}) {
      ASSERT_TRUE(this->agrees(x, TypeParam::from_double(x)));
      float narrow = static_cast<float>(x);
      ASSERT_TRUE(this->agrees(narrow, TypeParam::from_float(narrow)));
    }
  }
}

TYPED_TEST(FloatFormats, RoundsRandomBitPatternsLikeTheReference) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    float x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    ASSERT_TRUE(this->agrees(x, TypeParam::from_float(x)));
    double wide = std::bit_cast<double>(random());
    ASSERT_TRUE(this->agrees(wide, TypeParam::from_double(wide)));
    // Random doubles are nearly all out of range: also take some of the format's own size.
    double near = std::ldexp(wide / std::exp2(std::ilogb(wide)),
                             std::ilogb(FloatInfo<TypeParam>::smallest_subnormal) - 2 +
                                 static_cast<int>(random() % 300));
    ASSERT_TRUE(this->agrees(near, TypeParam::from_double(near)));
  }
}

TYPED_TEST(FloatFormats, SendsEveryMidpointToTheEvenNeighbour) {
  const auto& table = this->reference().table();
  for (std::size_t i = 0; i + 1 < table.size(); ++i) {
    double midpoint = (table[i].value + table[i + 1].value) / 2;
    int even = table[i].code % 2 == 0 ? table[i].code : table[i + 1].code;
    ASSERT_EQ(TypeParam::from_double(midpoint).bits, even);
    ASSERT_EQ(TypeParam::from_float(static_cast<float>(midpoint)).bits, even);
    ASSERT_EQ(TypeParam::from_double(-midpoint).bits, even | (TypeParam::kMagnitudeMask + 1));
  }
}

// 1 + half a unit + a little: up. Through float the little is lost, a tie is left, and it goes
// down.
TYPED_TEST(FloatFormats, RoundsOnceFromDouble) {
  double half_unit = FloatInfo<TypeParam>::eps / 2;
  double x = 1.0 + half_unit + std::ldexp(1.0, -40);
  EXPECT_EQ(TypeParam::from_double(x).to_float(), 1.0f + FloatInfo<TypeParam>::eps);
  EXPECT_EQ(TypeParam::from_float(static_cast<float>(x)).to_float(), 1.0f);
  double subnormal = FloatInfo<TypeParam>::smallest_subnormal * (0.5 + std::ldexp(1.0, -40));
  EXPECT_EQ(TypeParam::from_double(subnormal).bits, 1);
  EXPECT_EQ(TypeParam::from_double(FloatInfo<TypeParam>::smallest_subnormal / 2).bits, 0);
}

TYPED_TEST(FloatFormats, KeepsTheSignOfNanAndMakesItQuiet) {
  const std::uint32_t signalling = 0x7f800001;
  for (std::uint32_t sign : {0u, 0x80000000u}) {
    TypeParam x = TypeParam::from_float(std::bit_cast<float>(signalling | sign));
    int sign_code = sign ? TypeParam::kMagnitudeMask + 1 : 0;
    EXPECT_EQ(x.bits, TypeParam::kNanCode | sign_code);
    std::uint32_t back = std::bit_cast<std::uint32_t>(x.to_float());
    EXPECT_EQ(back & 0xffc00000, 0x7fc00000 | sign);
  }
  EXPECT_EQ(TypeParam::from_double(-kNan).bits,
            TypeParam::kNanCode | (TypeParam::kMagnitudeMask + 1));
}

TYPED_TEST(FloatFormats, ComparesLikeFloat) {
  EXPECT_EQ(TypeParam(0.0f), TypeParam(-0.0f));
  EXPECT_EQ(TypeParam(1.0f), TypeParam(1.0));
  EXPECT_NE(TypeParam(1.0f), TypeParam(-1.0f));
  EXPECT_NE(TypeParam(kNan), TypeParam(kNan));
}

TYPED_TEST(FloatFormats, InfoMatchesTheTable) {
  using Info = FloatInfo<TypeParam>;
  const auto& table = this->reference().table();
  EXPECT_EQ(Info::max, table.back().value);
  EXPECT_EQ(Info::lowest, -table.back().value);
  EXPECT_EQ(Info::smallest_subnormal, table[1].value);
  EXPECT_EQ(Info::tiny, table[std::size_t{1} << kFacts<TypeParam>.mantissa_bits].value);
  EXPECT_EQ(TypeParam(1.0 + Info::eps).bits, TypeParam(1.0).bits + 1);
  EXPECT_EQ(Info::has_infinity, kFacts<TypeParam>.top_exponent_is_special);
  EXPECT_EQ(Info::exponent_bits + Info::mantissa_bits + 1, static_cast<int>(sizeof(TypeParam)) * 8);
}

TEST(FloatInfo, HasThePublishedValues) {
  auto expect_near = [](double got, double published) { EXPECT_NEAR(got / published, 1, 5e-5); };
  expect_near(FloatInfo<float>::max, 3.4028e38);
  expect_near(FloatInfo<float>::tiny, 1.1755e-38);
  expect_near(FloatInfo<float>::eps, 1.1921e-7);
  EXPECT_EQ(FloatInfo<f16>::max, 65504);
  expect_near(FloatInfo<f16>::tiny, 6.1035e-5);
  expect_near(FloatInfo<f16>::eps, 9.7656e-4);
  expect_near(FloatInfo<bf16>::max, 3.3895e38);
  expect_near(FloatInfo<bf16>::tiny, 1.1755e-38);
  EXPECT_EQ(FloatInfo<bf16>::eps, 7.8125e-3);
  EXPECT_EQ(FloatInfo<f8e4m3>::max, 448);
  EXPECT_EQ(FloatInfo<f8e4m3>::lowest, -448);
  EXPECT_EQ(FloatInfo<f8e5m2>::max, 57344);
  EXPECT_EQ(FloatInfo<f8e5m2>::lowest, -57344);
  EXPECT_EQ(FloatInfo<float>::exponent_bits, 8);
  EXPECT_EQ(FloatInfo<double>::exponent_bits, 11);
  EXPECT_FALSE(FloatInfo<f8e4m3>::has_infinity);
}

TEST(FloatFormatsByHand, SmallNumbersVanishInF16AndSurviveInBf16) {
  EXPECT_EQ(f16(1e-8f).to_float(), 0.0f);
  EXPECT_NEAR(bf16(1e-8f).to_float() / 1.00117e-8, 1, 1e-5);
}

TEST(FloatFormatsByHand, OverflowGoesToInfinityOrSaturates) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(f16(65519.0f).to_float(), 65504.0f);
  EXPECT_EQ(f16(65520.0f).to_float(), infinity);
  EXPECT_EQ(bf16(std::numeric_limits<float>::max()).to_float(), infinity);
  EXPECT_EQ(f8e4m3(1e30f).to_float(), 448.0f);
  EXPECT_EQ(f8e4m3(-infinity).to_float(), -448.0f);
  EXPECT_EQ(f8e5m2(1e30f).to_float(), 57344.0f);
  EXPECT_EQ(f8e5m2(-1e300).to_float(), -57344.0f);
  EXPECT_EQ(f8e5m2(-infinity).to_float(), -infinity);
}

TEST(FloatFormatsByHand, ConvertAtCompileTime) {
  static_assert(f16(1.0f).bits == 0x3c00 && bf16(1.0).bits == 0x3f80);
  static_assert(f8e4m3(1.0f).bits == 0x38 && f8e5m2(1.0f).bits == 0x3c);
  static_assert(f16::from_double(1e-7).to_float() == 0x1p-23f);
  static_assert(f16(std::numeric_limits<float>::quiet_NaN()).is_nan());
  static_assert(bf16(std::numeric_limits<float>::infinity()).is_infinite());
  static_assert(f8e4m3::from_bits(0x7f).is_nan() && !f8e4m3::from_bits(0x7e).is_nan());
  static_assert(SmallFloatType<f8e5m2> && !SmallFloatType<float>);
  static_assert(!std::is_constructible_v<f16, int>);
}

#if defined(__FLT16_MANT_DIG__)
TEST(FloatFormatsByHand, F16AgreesWithTheCompilersFloat16) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 500'000; ++i) {
    std::uint32_t exponent = 95 + static_cast<std::uint32_t>(random() % 50);  // around f16's range
    std::uint32_t bits = (static_cast<std::uint32_t>(random()) & 0x807fffff) | exponent << 23;
    float x = std::bit_cast<float>(bits);
    ASSERT_EQ(f16(x).bits, std::bit_cast<std::uint16_t>(static_cast<_Float16>(x))) << x;
    double wide = static_cast<double>(x) * (1 + std::ldexp(static_cast<double>(random() % 9), -50));
    ASSERT_EQ(f16(wide).bits, std::bit_cast<std::uint16_t>(static_cast<_Float16>(wide))) << wide;
  }
  for (int code = 0; code < 65536; ++code) {
    f16 x = f16::from_bits(static_cast<std::uint16_t>(code));
    if (x.is_nan()) continue;
    ASSERT_EQ(x.to_float(), static_cast<float>(std::bit_cast<_Float16>(x.bits)));
  }
}
#endif

#if defined(__F16C__)
TEST(FloatFormatsByHand, F16AgreesWithTheF16cInstructions) {
  std::mt19937 random(3);
  for (int i = 0; i < 1'000'000; ++i) {
    float x = std::bit_cast<float>(
        static_cast<std::uint32_t>(random()));  // NaNs included: same payload, made quiet
    ASSERT_EQ(f16(x).bits, _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT)) << x;
  }
  for (int code = 0; code < 65536; ++code) {
    auto bits = static_cast<std::uint16_t>(code);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(f16::from_bits(bits).to_float()),
              std::bit_cast<std::uint32_t>(_cvtsh_ss(bits)));
  }
}
#endif

}  // namespace
}  // namespace brrr
