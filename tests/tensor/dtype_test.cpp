#include "brrr/tensor/dtype.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "brrr/tensor/element.h"
#include "brrr/tensor/tensor.h"

namespace brrr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using enum DType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(DType, NamesRoundTrip) {
  EXPECT_EQ(to_text(f32), "f32");
  EXPECT_EQ(to_text(boolean), "bool");
  EXPECT_EQ(to_text(f8e4m3), "f8e4m3");
  for (DType dtype : kAllDTypes) EXPECT_EQ(parse_dtype(to_text(dtype)), dtype);
  EXPECT_THAT([] { parse_dtype("float32"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("\"float32\""), HasSubstr("f32"))));
}

TEST(DType, SizesAreThoseOfTheFormats) {
  const std::vector<std::pair<DType, int>> expected = {
      {f64, 64}, {f32, 32},    {f16, 16}, {bf16, 16}, {f8e4m3, 8}, {f8e5m2, 8},
      {i64, 64}, {i32, 32},    {i16, 16}, {i8, 8},    {u32, 32},   {u16, 16},
      {u8, 8},   {boolean, 8}, {i4, 4},   {u4, 4},    {u64, 64}};
  for (const auto& [dtype, bits] : expected) EXPECT_EQ(bit_size(dtype), bits) << to_text(dtype);
}

TEST(DType, PackedTypesTakeHalfAByteRoundedUp) {
  EXPECT_EQ(storage_bytes(f32, 32), 128);
  EXPECT_EQ(storage_bytes(i4, 0), 0);
  EXPECT_EQ(storage_bytes(i4, 1), 1);
  EXPECT_EQ(storage_bytes(u4, 2), 1);
  EXPECT_EQ(storage_bytes(u4, 7), 4);
}

TEST(DType, EveryDTypeIsOfExactlyOneCategory) {
  for (DType dtype : kAllDTypes) {
    EXPECT_EQ(is_float(dtype) + is_integer(dtype) + (dtype == boolean), 1) << to_text(dtype);
    if (!is_packed(dtype)) {
      EXPECT_EQ(visit_dtype(dtype, []<typename T>() { return dtype_of<T>(); }), dtype);
    }
  }
  EXPECT_THAT([] { visit_dtype(i4, []<typename T>() {}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("i4"), HasSubstr("cast"))));
}

TEST(DType, ComputesInF32UnlessThatWouldLoseDigits) {
  for (DType dtype : {f32, f16, bf16, f8e4m3, f8e5m2}) {
    EXPECT_EQ(compute_type(dtype), ComputeType::f32);
  }
  EXPECT_EQ(compute_type(f64), ComputeType::f64);
  for (DType dtype : {i64, i32, i16, i8, u32, u16, u8, boolean, i4, u4}) {
    EXPECT_EQ(compute_type(dtype), ComputeType::i64);
  }
  EXPECT_EQ(compute_type(u64), ComputeType::u64) << "an i64 does not hold its upper half";
}

// torch.promote_types of PyTorch 2.15, row with column.
TEST(Promotion, IsPyTorchsForItsStandardDTypes) {
  const std::vector<DType> order = {f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean};
  const std::vector<std::vector<DType>> expected = {
      {f64, f64, f64, f64, f64, f64, f64, f64, f64, f64},
      {f64, f32, f32, f32, f32, f32, f32, f32, f32, f32},
      {f64, f32, f16, f32, f16, f16, f16, f16, f16, f16},
      {f64, f32, f32, bf16, bf16, bf16, bf16, bf16, bf16, bf16},
      {f64, f32, f16, bf16, i64, i64, i64, i64, i64, i64},
      {f64, f32, f16, bf16, i64, i32, i32, i32, i32, i32},
      {f64, f32, f16, bf16, i64, i32, i16, i16, i16, i16},
      {f64, f32, f16, bf16, i64, i32, i16, i8, i16, i8},
      {f64, f32, f16, bf16, i64, i32, i16, i16, u8, u8},
      {f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean}};
  for (size_t a = 0; a < order.size(); ++a) {
    for (size_t b = 0; b < order.size(); ++b) {
      EXPECT_EQ(to_text(promote(order[a], order[b])), to_text(expected[a][b]))
          << to_text(order[a]) << " with " << to_text(order[b]);
    }
  }
}

// PyTorch refuses mixes of fp8 and of wide unsigned integers, except u16, u32 and u64 with floats.
TEST(Promotion, OfTheOtherDTypesFindsATypeThatHoldsBoth) {
  for (DType wide : {u64, u32, u16}) {
    for (DType floating : {f64, f32, f16, bf16}) EXPECT_EQ(promote(wide, floating), floating);
  }
  EXPECT_EQ(promote(u32, i32), i64);
  EXPECT_EQ(promote(u32, i64), i64);
  EXPECT_EQ(promote(u16, i16), i32);
  EXPECT_EQ(promote(u32, u8), u32);
  for (DType narrow : {u32, u16, u8, u4, boolean}) EXPECT_EQ(promote(u64, narrow), u64);
  EXPECT_EQ(promote(f8e4m3, f8e5m2), f32);
  EXPECT_EQ(promote(f8e4m3, bf16), bf16);
  EXPECT_EQ(promote(i4, u4), i8);
}

// As torch.promote_types of PyTorch 2.15 does.
TEST(Promotion, OfU64WithSignedIntegersIsRefused) {
  for (DType signed_integer : {i64, i32, i16, i8, i4}) {
    const std::string refusal = "promote: no integer dtype holds the values of both " +
                                to_text(signed_integer) + " and u64; cast one of them first";
    EXPECT_THAT([&] { promote(u64, signed_integer); }, ThrowsMessage<Error>(refusal));
    EXPECT_THAT([&] { promote(signed_integer, u64); }, ThrowsMessage<Error>(refusal));
  }
}

// Pairs that have a common dtype.
bool can_mix(DType a, DType b) {
  const auto is_signed = [](DType dtype) { return is_integer(dtype) && iinfo(dtype).min < 0; };
  return !(a == u64 && is_signed(b)) && !(b == u64 && is_signed(a));
}

TEST(Promotion, IsSymmetricAndKeepsEqualTypes) {
  for (DType a : kAllDTypes) {
    EXPECT_EQ(promote(a, a), a);
    for (DType b : kAllDTypes) {
      if (can_mix(a, b)) {
        EXPECT_EQ(promote(a, b), promote(b, a));
      }
    }
  }
}

TEST(Promotion, OfIntegersHoldsTheValuesOfBoth) {
  for (DType a : kAllDTypes) {
    for (DType b : kAllDTypes) {
      if (!is_integer(a) || !is_integer(b) || !can_mix(a, b)) continue;
      const IntLimits both = iinfo(promote(a, b));
      EXPECT_LE(both.min, std::min(iinfo(a).min, iinfo(b).min)) << to_text(a) << to_text(b);
      EXPECT_GE(both.max, std::max(iinfo(a).max, iinfo(b).max)) << to_text(a) << to_text(b);
    }
  }
}

// The table of lecture 2, to the five digits that it gives (fp8: the largest values only).
TEST(Limits, OfFloatsAreThoseOfTheLecture) {
  struct Row {
    DType dtype;
    double max, tiny, eps;
  };
  const std::vector<Row> rows = {{f32, 3.4028e38, 1.1755e-38, 1.1921e-7},
                                 {f16, 65504, 6.1035e-5, 9.7656e-4},
                                 {bf16, 3.3895e38, 1.1755e-38, 7.8125e-3}};
  const auto five_digits = [](double a, double b) { return std::fabs(a / b - 1) < 5e-5; };
  for (const Row& row : rows) {
    const FloatLimits info = finfo(row.dtype);
    EXPECT_TRUE(five_digits(info.max, row.max)) << to_text(row.dtype) << " max " << info.max;
    EXPECT_TRUE(five_digits(info.tiny, row.tiny)) << to_text(row.dtype) << " tiny " << info.tiny;
    EXPECT_TRUE(five_digits(info.eps, row.eps)) << to_text(row.dtype) << " eps " << info.eps;
  }
  EXPECT_EQ(finfo(f8e4m3).max, 448);
  EXPECT_EQ(finfo(f8e5m2).max, 57344);
  EXPECT_EQ(finfo(f64).eps, std::numeric_limits<double>::epsilon());
}

TEST(Limits, OfIntegersAreTheirExtremes) {
  EXPECT_EQ(iinfo(i8).min, -128);
  EXPECT_EQ(iinfo(i8).max, 127);
  EXPECT_EQ(iinfo(u32).max, 4'294'967'295);
  EXPECT_EQ(iinfo(i64).max, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(iinfo(u64).min, 0);
  EXPECT_EQ(iinfo(u64).max, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(iinfo(i64).min, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(iinfo(i4).min, -8);
  EXPECT_EQ(iinfo(i4).max, 7);
  EXPECT_EQ(iinfo(u4).max, 15);
}

TEST(Limits, AskedOfTheWrongSortAreRefused) {
  EXPECT_THAT([] { finfo(i32); }, ThrowsMessage<Error>(HasSubstr("i32")));
  EXPECT_THAT([] { finfo(i4); }, ThrowsMessage<Error>(HasSubstr("i4")));
  EXPECT_THAT([] { iinfo(bf16); }, ThrowsMessage<Error>(HasSubstr("bf16")));
  EXPECT_THAT([] { iinfo(boolean); }, ThrowsMessage<Error>(HasSubstr("bool")));
}

TEST(Conversion, FloatsTruncateAndSaturateAsIntegers) {
  EXPECT_EQ(convert_element<int32_t>(2.9), 2);
  EXPECT_EQ(convert_element<int32_t>(-2.9), -2);
  EXPECT_EQ(convert_element<int32_t>(1e30F), 2'147'483'647);
  EXPECT_EQ(convert_element<int32_t>(-kInfinity), -2'147'483'648);
  EXPECT_EQ(convert_element<int32_t>(2147483647.0), 2'147'483'647);
  EXPECT_EQ(convert_element<int32_t>(2147483646.5), 2'147'483'646);
  EXPECT_EQ(convert_element<int64_t>(9.3e18F), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(convert_element<int64_t>(-9.3e18), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(convert_element<int8_t>(127.9F), 127);
  EXPECT_EQ(convert_element<int8_t>(200.0F), 127);
  EXPECT_EQ(convert_element<uint8_t>(-3.0F), 0);
  EXPECT_EQ(convert_element<uint8_t>(255.5), 255);
  EXPECT_EQ(convert_element<uint32_t>(4294967040.0F), 4'294'967'040U)
      << "the last float below 2^32";
  EXPECT_EQ(convert_element<uint32_t>(4294967296.0F), 4'294'967'295U);
  EXPECT_EQ(convert_element<int16_t>(brrr::bf16(1e5F)), 32'767);
  EXPECT_EQ(convert_element<uint64_t>(18446744073709549568.0), 18'446'744'073'709'549'568U)
      << "the last double below 2^64";
  EXPECT_EQ(convert_element<uint64_t>(18446744073709551616.0), UINT64_MAX);
  EXPECT_EQ(convert_element<uint64_t>(-1.0F), 0U);
}

TEST(Conversion, NanBecomesZeroAsAnInteger) {
  EXPECT_EQ(convert_element<int64_t>(kNan), 0);
  EXPECT_EQ(convert_element<int8_t>(static_cast<float>(kNan)), 0);
  EXPECT_EQ(convert_element<uint16_t>(brrr::f16(kNan)), 0);
}

TEST(Conversion, IntegersWrap) {
  EXPECT_EQ(convert_element<int8_t>(int64_t{130}), -126);
  EXPECT_EQ(convert_element<uint8_t>(int64_t{-1}), 255);
  EXPECT_EQ(convert_element<uint32_t>(int64_t{1} << 32), 0U);
  EXPECT_EQ(convert_element<int32_t>(uint32_t{4'294'967'295U}), -1);
  EXPECT_EQ(convert_element<uint64_t>(int64_t{-1}), UINT64_MAX);
  EXPECT_EQ(convert_element<int64_t>(uint64_t{1} << 63), INT64_MIN);
}

TEST(Conversion, AnythingButZeroIsTrue) {
  EXPECT_TRUE(convert_element<bool>(0.1F));
  EXPECT_TRUE(convert_element<bool>(kNan));
  EXPECT_TRUE(convert_element<bool>(int64_t{256})) << "not its low byte";
  EXPECT_TRUE(convert_element<bool>(brrr::f8e5m2(-2.0F)));
  EXPECT_FALSE(convert_element<bool>(-0.0));
  EXPECT_FALSE(convert_element<bool>(int8_t{0}));
  EXPECT_EQ(convert_element<float>(true), 1.0F);
}

TEST(Conversion, SmallFloatsRoundOnceAndSaturateWhereTheyHaveNoInfinity) {
  EXPECT_EQ(convert_element<brrr::f16>(1e-8).to_float(), 0) << "underflows, as the lecture shows";
  EXPECT_NEAR(convert_element<brrr::bf16>(1e-8F).to_float(), 1.00117e-8, 1e-13);
  EXPECT_TRUE(convert_element<brrr::f16>(70'000.0F).is_infinite());
  EXPECT_EQ(convert_element<brrr::f8e4m3>(1000.0F).to_float(), 448);
  EXPECT_EQ(convert_element<brrr::f8e5m2>(-1e6).to_float(), -57344);
  EXPECT_EQ(convert_element<brrr::bf16>(int64_t{257}).to_float(), 256) << "a tie goes to even";
  // Half a unit and a bit: through f32 the bit is lost and the tie goes down.
  const double above_tie = 1 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40);
  EXPECT_EQ(convert_element<brrr::bf16>(above_tie).to_float(), 1 + std::ldexp(1.0F, -7));
}

TEST(Packed, TwoElementsShareAByteTheFirstInItsLowHalf) {
  const Tensor x = empty({4}, u4);
  for (int64_t i = 0; i < 4; ++i) store_int(x, i, i + 1);
  EXPECT_EQ(x.storage().bytes(), 2);
  EXPECT_EQ(static_cast<int>(x.storage().data()[0]), 0x21);
  EXPECT_EQ(static_cast<int>(x.storage().data()[1]), 0x43);
  store_int(x, 2, 15);
  EXPECT_EQ(x.to_vector<int>(), (std::vector<int>{1, 2, 15, 4})) << "neighbours keep their value";
}

TEST(Packed, StoresEveryValueItCanHold) {
  for (DType dtype : {i4, u4}) {
    const Tensor x = empty({16}, dtype);
    const IntLimits range = iinfo(dtype);
    for (int64_t i = 0; i < 16; ++i) store_int(x, i, range.min + i);
    for (int64_t i = 0; i < 16; ++i) {
      EXPECT_EQ(load_int(x, i), range.min + i);
      EXPECT_EQ(load_float(x, i), static_cast<double>(range.min + i));
    }
  }
}

TEST(Packed, FloatsSaturateAndIntegersWrapAsForEveryInteger) {
  const Tensor x = empty({1}, i4), y = empty({1}, u4);
  const auto signed_of = [&](auto value) {
    if constexpr (std::integral<decltype(value)>)
      store_int(x, 0, value);
    else
      store_float(x, 0, value);
    return load_int(x, 0);
  };
  EXPECT_EQ(signed_of(7.9), 7);
  EXPECT_EQ(signed_of(100.0), 7);
  EXPECT_EQ(signed_of(-kInfinity), -8);
  EXPECT_EQ(signed_of(kNan), 0);
  EXPECT_EQ(signed_of(9), -7);
  store_float(y, 0, -3.0);
  EXPECT_EQ(load_int(y, 0), 0);
  store_int(y, 0, 17);
  EXPECT_EQ(load_int(y, 0), 1);
}

}  // namespace
}  // namespace brrr
