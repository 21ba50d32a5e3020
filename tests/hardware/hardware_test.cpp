#include "brrr/hardware/hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "brrr/hardware/mfu.h"

namespace brrr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

double promised(std::string_view device, DType dtype) {
  return hardware::promised_rate(device, dtype).dense.value();
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
  EXPECT_EQ(hardware::device_memory("H200").size, 141_GB);
  EXPECT_EQ(hardware::device_memory("H200").bandwidth, BytesPerSecond(4.8e12));
  EXPECT_EQ(hardware::device_memory("H100").size, 80_GB);
}

TEST(Hardware, EveryNumberSaysWhereItComesFrom) {
  for (const hardware::GpuSpec& gpu : hardware::known_gpus()) {
    EXPECT_FALSE(gpu.memory_source.empty()) << gpu.name;
    std::set<hardware::Arithmetic> seen;
    for (const hardware::PeakRate& peak : gpu.peaks) {
      EXPECT_FALSE(peak.source.empty()) << gpu.name;
      EXPECT_FALSE(peak.accumulate.empty()) << gpu.name;
      EXPECT_TRUE(seen.insert(peak.arithmetic).second)
          << gpu.name << " " << hardware::to_text(peak.arithmetic);
    }
  }
}

TEST(Hardware, StableNamesAreThere) {
  for (const char* name :
       {"v100-sxm2", "t4",        "a10",      "a100-40", "a100-80",  "a100-80-pcie", "l4",
        "l40s",      "h100-pcie", "h100-sxm", "h100",    "h100-nvl", "h200",         "b100",
        "b200",      "gb200",     "rtx3090",  "rtx4090", "rtx5090",  "mi250x",       "mi300x",
        "tpu-v4",    "tpu-v5e",   "tpu-v5p",  "tpu-v6e", "m1",       "m1-max",       "m2-ultra",
        "m3-max",    "m4-max",    "m3-ultra"})
    EXPECT_NO_THROW(hardware::find_gpu(name)) << name;
}

// What a compiler asks of its target. The B100's SM count and L2 cache are not published.
TEST(Hardware, NvidiaDevicesHaveWhatACompilerTargetNeeds) {
  int checked = 0;
  for (const hardware::GpuSpec& gpu : hardware::known_gpus()) {
    if (!gpu.title.starts_with("NVIDIA")) continue;
    ++checked;
    EXPECT_TRUE(gpu.compute_capability) << gpu.name;
    EXPECT_GE(gpu.shared_per_block, Bytes(48 << 10)) << gpu.name;
    EXPECT_LE(gpu.shared_per_block, gpu.shared_per_multiprocessor) << gpu.name;
    EXPECT_LE(gpu.shared_per_multiprocessor, gpu.l1) << gpu.name;
    if (gpu.name == "b100") continue;
    EXPECT_GE(gpu.multiprocessors, 40) << gpu.name;
    EXPECT_GE(gpu.l2, Bytes(4 << 20)) << gpu.name;
  }
  EXPECT_GE(checked, 20);
  const hardware::GpuSpec& h200 = hardware::find_gpu("h200");
  EXPECT_EQ(h200.multiprocessors, 132);
  EXPECT_EQ(h200.compute_capability->major, 9);
  EXPECT_EQ(h200.compute_capability->minor, 0);
  EXPECT_EQ(h200.shared_per_multiprocessor, Bytes(228 << 10));
  EXPECT_EQ(h200.shared_per_block, Bytes(227 << 10));
  EXPECT_EQ(hardware::find_gpu("h100-pcie").multiprocessors, 114);
  EXPECT_EQ(hardware::find_gpu("rtx4090").multiprocessors, 128);
  EXPECT_EQ(hardware::find_gpu("b200").multiprocessors, 148);
}

TEST(Hardware, TheTableIsInTheOrderOfItsFile) {
  EXPECT_EQ(hardware::known_gpus().front().name, "v100-sxm2");
  EXPECT_EQ(hardware::known_gpus()[11].name,
            "h100-96");  // after h100-sxm, which is not the order of names
}

TEST(Hardware, TheTableAgreesWithClockTimesUnits) {
  int checked = 0;
  for (const hardware::GpuSpec& gpu : hardware::known_gpus()) {
    EXPECT_NO_THROW(hardware::require_consistent(gpu)) << gpu.name;
    checked += gpu.clock ? 1 : 0;
  }
  EXPECT_GE(checked, 20);
  EXPECT_NEAR(hardware::find_gpu("h100").clock->rate().value(), 989.4e12, 0.1e12);
  EXPECT_NEAR(hardware::find_gpu("a100").clock->rate().value(), 311.9e12, 0.1e12);
}

TEST(Hardware, RidgesAreThoseOfTheNotes) {
  const std::pair<const char*, double> known[] = {
      {"a100-40", 201},   {"a10", 208},    {"l4", 403},     {"l40s", 419},
      {"h100-pcie", 378}, {"b200", 281},   {"gb200", 313},  {"rtx4090", 164},
      {"mi300x", 247},    {"tpu-v4", 229}, {"tpu-v5p", 166}};
  for (const auto& [name, ridge] : known)
    EXPECT_NEAR(hardware::ridge_flops_per_byte(name, DType::bf16), ridge, 1) << name;
}

constexpr const char* kCard = R"([gpu.my-card]
bf16_tflops = 200
fp32_tflops = 50
memory_gb = 48
bandwidth_gb_s = 1000
headline = "dense"
source = "a leaflet"
clock_mhz = 1953.125
units = 400
fma_per_cycle = 128
)";

TEST(HardwareToml, AUserAddsADevice) {
  hardware::add_gpus_from_toml(kCard, "cards.toml");
  const hardware::GpuSpec& card = hardware::find_gpu("my-card");
  EXPECT_DOUBLE_EQ(card.peak(hardware::Arithmetic::bf16).dense.value(), 200e12);
  EXPECT_EQ(card.memory, 48_GB);
  EXPECT_THAT([] { hardware::add_gpus_from_toml(kCard, "cards.toml"); },
              ThrowsMessage<Error>(HasSubstr("is taken")));
}

// The form of the built-in table: each number with its own source, and what a compiler asks.
TEST(HardwareToml, EveryNumberMayHaveASourceOfItsOwn) {
  hardware::add_gpus_from_toml(R"([gpu.my-chip]
title = "A chip"
aliases = ["my-other-name"]
driver_names = ["Chip 5000"]
bf16_tflops = { dense = 100, headline = "sparse", source = "half of a leaflet's 200" }
memory_gb = 24
bandwidth_gb_s = 500
memory_source = "a letter"
link = { name = "rope", gb_s = 10 }
compute_capability = "12.1"
shared_kib_per_sm = 100
shared_kib_per_block = 99
)",
                               "chips.toml");
  const hardware::GpuSpec& chip = hardware::find_gpu("my-other-name");
  EXPECT_EQ(chip.title, "A chip");
  EXPECT_EQ(hardware::device_from_driver_name("Chip 5000"), "my-chip");
  const hardware::PeakRate& peak = chip.peak(hardware::Arithmetic::bf16);
  EXPECT_EQ(peak.dense, FlopsPerSecond(100e12));  // `dense` is halved already
  EXPECT_EQ(peak.headline, hardware::Headline::sparse_halved);
  EXPECT_EQ(peak.source, "half of a leaflet's 200");
  EXPECT_EQ(chip.memory_source, "a letter");
  EXPECT_EQ(chip.link.name, "rope");
  EXPECT_EQ(chip.compute_capability->major, 12);
  EXPECT_EQ(chip.compute_capability->minor, 1);
  EXPECT_EQ(chip.shared_per_block, Bytes(99 << 10));
}

TEST(HardwareToml, SparsePeaksGivenAsDenseAreRefused) {
  std::string text = kCard;
  text.replace(text.find("= 200"), 5, "= 400");
  text.replace(text.find("my-card"), 7, "my-next");
  EXPECT_THAT([&] { hardware::add_gpus_from_toml(text, "cards.toml"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("sparsity"), HasSubstr("half of it"))));
  text.replace(text.find("\"dense\""), 7, "\"sparse\"");
  hardware::add_gpus_from_toml(text, "cards.toml");
  EXPECT_DOUBLE_EQ(hardware::find_gpu("my-next").peak(hardware::Arithmetic::bf16).dense.value(),
                   200e12);
}

TEST(HardwareToml, SaysWhatIsMissingOrWrong) {
  const auto refuse = [](const std::string& text) {
    return [text] { hardware::add_gpus_from_toml(text, "x.toml"); };
  };
  EXPECT_THAT(refuse("[gpu.a]\nbf16_tflops = 1\n"),
              ThrowsMessage<Error>(HasSubstr("needs source")));
  EXPECT_THAT(refuse("[gpu.a]\nsource = \"s\"\nheadline = \"fast\"\n"),
              ThrowsMessage<Error>(HasSubstr("halved")));
  EXPECT_THAT(refuse("hello = 1\n"), ThrowsMessage<Error>(HasSubstr("[gpu.NAME]")));
  EXPECT_THAT(refuse("[gpu.a\n"), ThrowsMessage<Error>(HasSubstr("line 1")));
  EXPECT_THAT(
      refuse("[gpu.a]\nsource = \"s\"\nheadline = \"dense\"\nbf16_tflops = 1\nmemory_gb = 1\n"
             "bandwidth_gb_s = 1\ncolour = 3\n"),
      ThrowsMessage<Error>(HasSubstr("no setting \"colour\"")));
  const std::string card =
      "[gpu.a]\nsource = \"s\"\nheadline = \"dense\"\nbf16_tflops = 1\nmemory_gb = 1\n"
      "bandwidth_gb_s = 1\n";
  EXPECT_THAT(refuse(card + "compute_capability = \"nine\"\n"),
              ThrowsMessage<Error>(HasSubstr("is \"nine\"; write it as \"9.0\"")));
  EXPECT_THAT(refuse(card + "shared_kib_per_sm = 64\nshared_kib_per_block = 65\n"),
              ThrowsMessage<Error>(HasSubstr("a block runs on one SM")));
  EXPECT_THAT(refuse(card + "clock = { mhz = 1 }\n"),
              ThrowsMessage<Error>(HasSubstr("[gpu.a] clock needs arithmetic")));
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
  EXPECT_THAT([] { hardware::promised_rate("H1000", DType::bf16); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("\"H1000\""), HasSubstr("near are"), HasSubstr("h100-sxm"))));
  EXPECT_THAT([] { hardware::promised_rate("A100", DType::f8e4m3); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("fp8"), HasSubstr("a100-80"), HasSubstr("bf16 312 TFLOP/s"))));
  EXPECT_THAT([] { hardware::promised_rate("", DType::f32); },
              ThrowsMessage<Error>(HasSubstr("h200")));
  EXPECT_THAT([] { hardware::device_memory("TPU"); }, ThrowsMessage<Error>(HasSubstr("\"TPU\"")));
}

TEST(Hardware, KnowsWhatDriversReportAndGuessesNothing) {
  EXPECT_EQ(hardware::device_from_driver_name("NVIDIA H100 80GB HBM3"), "h100-sxm");
  EXPECT_EQ(hardware::device_from_driver_name("NVIDIA H100 PCIe"), "h100-pcie")
      << "a third slower than the SXM board";
  EXPECT_EQ(hardware::device_from_driver_name("NVIDIA A100-SXM4-40GB"), "a100-40");
  EXPECT_EQ(hardware::device_from_driver_name("NVIDIA H200"), "h200");
  EXPECT_THAT(
      [] { hardware::device_from_driver_name("NVIDIA H100 SuperDuper"); },
      ThrowsMessage<Error>(AllOf(HasSubstr("NVIDIA H100 SuperDuper"), HasSubstr("measure"))));
}

TEST(Hardware, RidgeIsArithmeticOverBandwidth) {
  EXPECT_NEAR(hardware::ridge_flops_per_byte("H100", DType::bf16), 295, 1);
  EXPECT_NEAR(hardware::ridge_flops_per_byte("H200", DType::bf16), 206, 1);
  EXPECT_NEAR(hardware::ridge_flops_per_byte("A100", DType::bf16), 153, 1);
}

TEST(Mfu, IsActualOverPromised) {
  EXPECT_DOUBLE_EQ(hardware::mfu(FlopsPerSecond(5e14), FlopsPerSecond(1e15)), 0.5);
  EXPECT_EQ(hardware::mfu(FlopsPerSecond(0), FlopsPerSecond(1)), 0);
  EXPECT_GT(hardware::mfu(FlopsPerSecond(2), FlopsPerSecond(1)), 1)
      << "a wrong count must be seen, not clamped";
}

TEST(Mfu, RefusesPromisesThatCannotBe) {
  EXPECT_THROW(hardware::mfu(FlopsPerSecond(1), FlopsPerSecond(0)), Error);
  EXPECT_THROW(hardware::mfu(FlopsPerSecond(-1), FlopsPerSecond(1)), Error);
  EXPECT_THROW(hardware::ideal_time(Flops(1), FlopsPerSecond(0)), Error);
  EXPECT_THROW(hardware::run_time(Flops(1), {.promised = FlopsPerSecond(1), .devices = 0}), Error);
  EXPECT_THROW(hardware::run_time(Flops(1), {.promised = FlopsPerSecond(1), .mfu = 0}), Error);
  EXPECT_THROW(hardware::run_time(Flops(1), {.promised = FlopsPerSecond(1), .mfu = 1.5}), Error);
}

}  // namespace
}  // namespace brrr
