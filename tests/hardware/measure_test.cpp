#include "brrr/hardware/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "brrr/base/error.h"
#include "brrr/base/thread_pool.h"
#include "brrr/device/ledger.h"
#include "brrr/hardware/measure_cpu.h"
#include "brrr/tensor/tensor.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void sleep_ms(int time) { std::this_thread::sleep_for(std::chrono::milliseconds(time)); }

TEST(TimeMedian, WarmsUpOnceAndCallsEachTrial) {
  int calls = 0;
  hardware::time_median([&] { ++calls; }, 4);
  EXPECT_EQ(calls, 5);
}

TEST(TimeMedian, IsNotMovedByOneSlowCallOrByTheWarmUp) {
  int calls = 0;
  const Seconds time = hardware::time_median(
      [&] {
        ++calls;
        sleep_ms(calls == 1 || calls == 3 ? 200 : 1);
      },
      5);
  EXPECT_GE(time, Seconds(1e-3));
  EXPECT_LT(time, Seconds(0.1));
}

TEST(TimeMedian, NeedsATrial) {
  EXPECT_THAT([] { hardware::time_median([] {}, 0); },
              ThrowsMessage<Error>(HasSubstr("at least one trial")));
}

TEST(MeasurePeak, IsAPlausibleSpeedAndF32IsNotSlowerThanF64) {
  const FlopsPerSecond single = hardware::measure_peak(DType::f32),
                       twice = hardware::measure_peak(DType::f64);
  EXPECT_GT(single, FlopsPerSecond(1e7))
      << "slower than any machine of this century, even sanitized";
  EXPECT_LT(single, FlopsPerSecond(1e15)) << "the loop was optimised away";
  EXPECT_GT(single.value(), 0.8 * twice.value()) << "vectors hold twice as many f32";
}

TEST(MeasurePeak, RefusesWhatTheCpuDoesNotComputeIn) {
  EXPECT_THAT([] { hardware::measure_peak(DType::bf16); }, ThrowsMessage<Error>(HasSubstr("bf16")));
}

TEST(MeasureCpu, ChainsComputeWhatTheySay) {
  // After one step x -> x / 2 + 1; after many all are 2, of which there are flops / 2.
  EXPECT_FLOAT_EQ(hardware::run_f32_chains(1000),
                  static_cast<float>(hardware::f32_chain_flops_per_step()));
  EXPECT_DOUBLE_EQ(hardware::run_f64_chains(1000),
                   static_cast<double>(hardware::f64_chain_flops_per_step()));
}

TEST(MeasureCpu, SumsCopiesAndFillsEveryElement) {
  const Tensor x = empty({256}), y = empty({256});
  for (int64_t i = 0; i < 256; ++i) x.data<float>()[i] = static_cast<float>(i);
  EXPECT_EQ(hardware::sum_floats(x.data<float>(), 256), 255 * 256 / 2);
  for (hardware::Stores stores : {hardware::Stores::ordinary, hardware::Stores::streaming}) {
    y.fill(-1);
    hardware::copy_floats(y.data<float>(), x.data<float>(), 256, stores);
    EXPECT_EQ(y.to_vector<float>(), x.to_vector<float>());
    hardware::fill_floats(y.data<float>(), 7, 256, stores);
    EXPECT_EQ(y.to_vector<float>(), std::vector<float>(256, 7));
  }
}

TEST(MeasureMemory, GivesRatesAndLeavesNothingBehind) {
  const Bytes before = ledger().live();
  const hardware::MemoryRates rates = hardware::measure_memory();
  EXPECT_GT(rates.read, BytesPerSecond(1e7));
  EXPECT_LT(rates.read, BytesPerSecond(1e14));
  EXPECT_GT(rates.copy, BytesPerSecond(1e7));
  EXPECT_GT(rates.write, BytesPerSecond(1e7));
  EXPECT_GE(rates.working_set, 64_MiB);
  EXPECT_EQ(ledger().live(), before);
}

TEST(MeasureCache, GivesEachThreadTwoArraysOfItsOwn) {
  const hardware::MemoryRates rates = hardware::measure_cache(64_KiB);
  EXPECT_EQ(rates.working_set, 32_KiB * thread_pool().threads());
  for (BytesPerSecond rate : {rates.read, rates.write, rates.copy}) {
    EXPECT_GT(rate, BytesPerSecond(1e7));
    EXPECT_LT(rate, BytesPerSecond(1e14));
  }
  EXPECT_THAT([] { hardware::measure_cache(1_B); }, ThrowsMessage<Error>(HasSubstr("1 KiB")));
}

}  // namespace
}  // namespace brrr
