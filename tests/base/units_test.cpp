#include "brrr/base/units.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <type_traits>

namespace brrr {
namespace {

TEST(Units, LiteralsAreBinaryOrDecimalAsTheyAreSpelled) {
  static_assert(20_GiB == Bytes(21'474'836'480));
  static_assert(1_KiB == 1024_B && 1_MiB == 1024_KiB && 1_TiB == 1024_GiB);
  static_assert(80_GB == Bytes(80'000'000'000) && 1_TB == 1000_GB && 1_MB == 1000_kB);
}

TEST(Units, ArithmeticKeepsTheUnit) {
  static_assert(1_GiB + 512_MiB == 1536_MiB && 2_KiB - 1_KiB == 1_KiB);
  static_assert(3 * 2_KiB == 6_KiB && 6_KiB * std::size_t{2} == 12_KiB && 7_B / 2 == 3_B);
  static_assert(3_MiB / 2_MiB == 1.5);
  static_assert(-(1_B) < Bytes() && 2_B > 1_B && 1_B <= 1_B && 1_B != 2_B);
  static_assert(Seconds(1.5) * 2 == Seconds(3) && Flops(6) / 4 == Flops(1.5));
  Bytes total;
  total += 3_B;
  total -= 1_B;
  EXPECT_EQ(total.value(), 2);
}

template <typename A, typename B>
concept Addable = requires(A a, B b) {
  a + b;
};

TEST(Units, DoNotMixOrConvertSilently) {
  static_assert(!Addable<Bytes, Flops> && !Addable<Bytes, int> && Addable<Bytes, Bytes>);
  static_assert(!std::is_convertible_v<int, Bytes> && !std::is_convertible_v<Bytes, int>);
  static_assert(!std::is_constructible_v<Bytes, double>);
  static_assert(std::is_constructible_v<Flops, double> && std::is_constructible_v<Flops, long>);
  static_assert(std::is_trivially_copyable_v<Bytes> && sizeof(Bytes) == 8);
}

TEST(Units, RatesConnectThem) {
  static_assert(Flops(6e12) / Seconds(2) == FlopsPerSecond(3e12));
  static_assert(Flops(6e12) / FlopsPerSecond(3e12) == Seconds(2));
  static_assert(FlopsPerSecond(3e12) * Seconds(2) == Flops(6e12));
  static_assert(Bytes(6'000) / BytesPerSecond(3e3) == Seconds(2));
  static_assert(Bytes(6'000) / Seconds(2) == BytesPerSecond(3e3));
}

TEST(Units, BytesPrintInBinaryUnits) {
  EXPECT_EQ(to_text(0_B), "0 B");
  EXPECT_EQ(to_text(496_B), "496 B");
  EXPECT_EQ(to_text(1500_B), "1500 B");
  EXPECT_EQ(to_text(1_KiB), "1 KiB");
  EXPECT_EQ(to_text(10'000_B), "9.766 KiB");
  EXPECT_EQ(to_text(Bytes(2'415'919'104)), "2304 MiB");  // the GPT-3 feed-forward matrix in f32
  EXPECT_EQ(to_text(1536_MiB), "1.5 GiB");
  EXPECT_EQ(to_text(20_GiB), "20 GiB");
  EXPECT_EQ(to_text(Bytes(497'759'232)), "474.7 MiB");  // GPT-2 124M in f32
  EXPECT_EQ(to_text(Bytes(80'000'000'000)), "74.51 GiB");
  EXPECT_EQ(to_text(1_GiB - 1_B), "1 GiB");
  EXPECT_EQ(to_text(1_GiB + 1_B), "1 GiB");
  EXPECT_EQ(to_text(-(1536_MiB)), "-1.5 GiB");
  EXPECT_EQ(to_text(Bytes(std::numeric_limits<std::int64_t>::max())), "8192 PiB");
  EXPECT_EQ(to_text(Bytes(std::numeric_limits<std::int64_t>::min())), "-8192 PiB");
}

TEST(Units, BytesPrintInDecimalUnitsOnRequest) {
  EXPECT_EQ(to_text_decimal(0_B), "0 B");
  EXPECT_EQ(to_text_decimal(999_B), "999 B");
  EXPECT_EQ(to_text_decimal(1000_B), "1 kB");
  EXPECT_EQ(to_text_decimal(Bytes(2'415'919'104)), "2.416 GB");
  EXPECT_EQ(to_text_decimal(80_GB), "80 GB");
  EXPECT_EQ(to_text_decimal(Bytes(999'960)), "1 MB");
}

TEST(Units, FlopsAndRatesPrintWithFourDigits) {
  EXPECT_EQ(to_text(Flops(8'796'093'022'208)), "8.796 TFLOP");
  EXPECT_EQ(to_text(Flops(33'554'432)), "33.55 MFLOP");
  EXPECT_EQ(to_text(Flops(0)), "0 FLOP");
  EXPECT_EQ(to_text(Flops(999.94e9)), "999.9 GFLOP");
  EXPECT_EQ(to_text(Flops(999.96e9)), "1 TFLOP");
  EXPECT_EQ(to_text(Flops(6.3e24)), "6.3 YFLOP");
  EXPECT_EQ(to_text(Flops(1e30)), "1e+06 YFLOP");
  EXPECT_EQ(to_text(FlopsPerSecond(989.4e12)), "989.4 TFLOP/s");
  EXPECT_EQ(to_text(FlopsPerSecond(std::numeric_limits<double>::infinity())), "inf FLOP/s");
  EXPECT_EQ(to_text(BytesPerSecond(3.35e12)), "3.35 TB/s");
}

TEST(Units, SecondsChooseTheirUnit) {
  EXPECT_EQ(to_text(Seconds(0)), "0 s");
  EXPECT_EQ(to_text(Seconds(3.5e-9)), "3.5 ns");
  EXPECT_EQ(to_text(Seconds(1.2e-6)), "1.2 \u00b5s");
  EXPECT_EQ(to_text(Seconds(8.796093022208e12 / 989.5e12)), "8.889 ms");
  EXPECT_EQ(to_text(Seconds(12.345)), "12.35 s");
  EXPECT_EQ(to_text(Seconds(185)), "3 min 05 s");
  EXPECT_EQ(to_text(Seconds(5658)), "1 h 34 min");
  EXPECT_EQ(to_text(Seconds(7380)), "2 h 03 min");
  EXPECT_EQ(to_text(Seconds(144.25 * 86400)), "144 d 06 h");
  EXPECT_EQ(to_text(Seconds(2 * 365.25 * 86400 * 5)), "10 years");
  EXPECT_EQ(to_text(Seconds(-0.002)), "-2 ms");
  EXPECT_EQ(to_text(Seconds(std::numeric_limits<double>::infinity())), "inf s");
  EXPECT_EQ(to_text(Seconds(std::numeric_limits<double>::quiet_NaN())), "nan s");
}

TEST(Units, SecondsRoundIntoTheNextUnit) {
  EXPECT_EQ(to_text(Seconds(999.96e-9)), "1 \u00b5s");
  EXPECT_EQ(to_text(Seconds(999.96e-6)), "1 ms");
  EXPECT_EQ(to_text(Seconds(0.99996)), "1 s");
  EXPECT_EQ(to_text(Seconds(59.99)), "59.99 s");
  EXPECT_EQ(to_text(Seconds(59.999)), "1 min 00 s");
  EXPECT_EQ(to_text(Seconds(3599.4)), "59 min 59 s");
  EXPECT_EQ(to_text(Seconds(3599.6)), "1 h 00 min");
  EXPECT_EQ(to_text(Seconds(86399)), "1 d 00 h");
}

TEST(Units, CommasGroupThousands) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(124'439'808), "124,439,808");
  EXPECT_EQ(with_commas(-123456), "-123,456");
  EXPECT_EQ(with_commas(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

}  // namespace
}  // namespace brrr
