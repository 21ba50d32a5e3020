#include "brrr/account/hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "brrr/account/mfu.h"

namespace brrr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

double promised(std::string_view device, DType dtype) {
  return promised_rate(device, dtype).dense.value();
}

TEST(Hardware, HoldsThePromisesOfTheLecture) {
  EXPECT_EQ(promised("A100", DType::f32), 19.5e12);
  EXPECT_EQ(promised("A100", DType::f16), 312e12);
  EXPECT_EQ(promised("A100", DType::bf16), 312e12);
  EXPECT_EQ(promised("H100", DType::f32), 67.5e12);
  EXPECT_EQ(promised("H100", DType::f16), 989.5e12);
  EXPECT_EQ(promised("H100", DType::bf16), 989.5e12);
}

TEST(Hardware, AnH200IsAnH100WithMoreMemory) {
  EXPECT_EQ(promised("H200", DType::bf16), promised("H100", DType::bf16));
  EXPECT_EQ(device_memory("H200").size, 141_GB);
  EXPECT_EQ(device_memory("H200").bandwidth, BytesPerSecond(4.8e12));
  EXPECT_EQ(device_memory("H100").size, 80_GB);
}

TEST(Hardware, EveryNumberSaysWhereItComesFrom) {
  for (const PromisedRate& row : promised_rates()) EXPECT_FALSE(row.source.empty()) << row.device;
  for (const DeviceMemory& row : device_memories()) EXPECT_FALSE(row.source.empty()) << row.device;
}

TEST(Hardware, EveryDeviceHasOneMemoryAndOneRateADtype) {
  std::set<std::pair<std::string_view, DType>> rates;
  for (const PromisedRate& row : promised_rates()) {
    EXPECT_TRUE(rates.emplace(row.device, row.dtype).second)
        << row.device << " " << to_text(row.dtype);
    EXPECT_GT(device_memory(row.device).size, 0_B);
  }
  std::set<std::string_view> memories;
  for (const DeviceMemory& row : device_memories()) {
    EXPECT_TRUE(memories.insert(row.device).second) << row.device;
    EXPECT_GT(promised_rate(row.device, DType::f32).dense, FlopsPerSecond(0));
  }
}

TEST(Hardware, SparseHeadlinesAreHalved) {
  // bf16 tensor cores do 15 to 16 times the f32 rate on these boards; twice that would be sparse.
  for (std::string_view device : {"A100", "H100", "H100 PCIe", "H200"}) {
    const double ratio = promised(device, DType::bf16) / promised(device, DType::f32);
    EXPECT_GT(ratio, 14) << device;
    EXPECT_LT(ratio, 17) << device;
  }
}

TEST(Hardware, RefusesUnknownDevicesAndDtypesWithWhatIsKnown) {
  EXPECT_THAT([] { promised_rate("H1000", DType::bf16); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("\"H1000\""), HasSubstr("\"A100\""), HasSubstr("\"H100\""))));
  EXPECT_THAT([] { promised_rate("A100", DType::f8e4m3); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("f8e4m3"), HasSubstr("A100"), HasSubstr("bf16 312 TFLOP/s"))));
  EXPECT_THAT([] { promised_rate("", DType::f32); }, ThrowsMessage<Error>(HasSubstr("\"H200\"")));
  EXPECT_THAT([] { device_memory("TPU"); }, ThrowsMessage<Error>(HasSubstr("\"TPU\"")));
}

TEST(Hardware, KnowsWhatDriversReportAndGuessesNothing) {
  EXPECT_EQ(device_from_driver_name("NVIDIA H100 80GB HBM3"), "H100");
  EXPECT_EQ(device_from_driver_name("NVIDIA H100 PCIe"), "H100 PCIe")
      << "a third slower than the SXM board";
  EXPECT_EQ(device_from_driver_name("NVIDIA A100-SXM4-40GB"), "A100 40GB");
  EXPECT_EQ(device_from_driver_name("NVIDIA H200"), "H200");
  EXPECT_THAT(
      [] { device_from_driver_name("NVIDIA H100 SuperDuper"); },
      ThrowsMessage<Error>(AllOf(HasSubstr("NVIDIA H100 SuperDuper"), HasSubstr("measure"))));
}

TEST(Hardware, RidgeIsArithmeticOverBandwidth) {
  EXPECT_NEAR(ridge_flops_per_byte("H100", DType::bf16), 295, 1);
  EXPECT_NEAR(ridge_flops_per_byte("H200", DType::bf16), 206, 1);
  EXPECT_NEAR(ridge_flops_per_byte("A100", DType::bf16), 153, 1);
}

TEST(Mfu, IsActualOverPromised) {
  EXPECT_DOUBLE_EQ(mfu(FlopsPerSecond(5e14), FlopsPerSecond(1e15)), 0.5);
  EXPECT_EQ(mfu(FlopsPerSecond(0), FlopsPerSecond(1)), 0);
  EXPECT_GT(mfu(FlopsPerSecond(2), FlopsPerSecond(1)), 1)
      << "a wrong count must be seen, not clamped";
}

TEST(Mfu, RefusesPromisesThatCannotBe) {
  EXPECT_THROW(mfu(FlopsPerSecond(1), FlopsPerSecond(0)), Error);
  EXPECT_THROW(mfu(FlopsPerSecond(-1), FlopsPerSecond(1)), Error);
  EXPECT_THROW(ideal_time(Flops(1), FlopsPerSecond(0)), Error);
  EXPECT_THROW(run_time(Flops(1), {.promised = FlopsPerSecond(1), .devices = 0}), Error);
  EXPECT_THROW(run_time(Flops(1), {.promised = FlopsPerSecond(1), .mfu = 0}), Error);
  EXPECT_THROW(run_time(Flops(1), {.promised = FlopsPerSecond(1), .mfu = 1.5}), Error);
}

}  // namespace
}  // namespace brrr
