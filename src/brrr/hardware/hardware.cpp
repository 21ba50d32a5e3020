#include "brrr/hardware/hardware.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "brrr/base/error.h"
#include "brrr/base/join_names.h"
#include "brrr/base/nearest_word.h"
#include "brrr/hardware/hardware_table.h"

namespace brrr::hardware {
namespace {

constexpr std::array<std::string_view, kArithmetics> kNames = {"fp32", "tf32", "fp16", "bf16",
                                                               "fp8",  "fp4",  "int8"};

// Devices never move: what find_gpu returned stays where it is, so room for all that may come is made at once.
constexpr size_t kMostDevices = 1024;
std::vector<GpuSpec>& registry() {
  static std::vector<GpuSpec> gpus = [] {
    std::vector<GpuSpec> all;
    all.reserve(kMostDevices);
    for (GpuSpec& gpu : builtin_gpus()) all.push_back(std::move(gpu));
    return all;
  }();
  return gpus;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c == ' ' ? '-' : c)));
  return result;
}

bool is_called(const GpuSpec& gpu, const std::string& name) {
  const auto same = [&](const std::string& alias) { return lower(alias) == name; };
  return same(gpu.name) || same(gpu.title) ||
         std::any_of(gpu.aliases.begin(), gpu.aliases.end(), same);
}

std::string all_names() { return join_names(registry(), &GpuSpec::name); }

// Names that begin alike, and the one that a slip of the fingers would make.
std::string near_matches(const std::string& name) {
  constexpr size_t kStem = 3;
  std::vector<std::string> all, near;
  for (const GpuSpec& gpu : registry()) {
    all.push_back(gpu.name);
    if (name.size() >= kStem && gpu.name.starts_with(name.substr(0, kStem)))
      near.push_back(gpu.name);
  }
  return near.empty() ? nearest_word(name, all) : join_names(near);
}

}  // namespace

std::string_view to_text(Arithmetic arithmetic) { return kNames[static_cast<size_t>(arithmetic)]; }
std::string_view to_text(Headline headline) {
  return headline == Headline::dense ? "dense" : "sparse, halved";
}

Arithmetic parse_arithmetic(std::string_view name) {
  const std::string wanted = name == "f32" ? "fp32" : name == "f16" ? "fp16" : std::string(name);
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == wanted) return static_cast<Arithmetic>(i);
  }
  fail("there is no arithmetic \"", name, "\"; use one of fp32, tf32, fp16, bf16, fp8, fp4, int8");
}

Arithmetic arithmetic_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return Arithmetic::fp32;
    case DType::f16: return Arithmetic::fp16;
    case DType::bf16: return Arithmetic::bf16;
    case DType::f8e4m3:
    case DType::f8e5m2: return Arithmetic::fp8;
    case DType::i8: return Arithmetic::int8;
    default:
      fail("no promised speed of ", dtype, "; the table has f32, f16, bf16, 8-bit floats, i8");
  }
}

const PeakRate* GpuSpec::find(Arithmetic arithmetic) const {
  for (const PeakRate& row : peaks) {
    if (row.arithmetic == arithmetic) return &row;
  }
  return nullptr;
}

const PeakRate& GpuSpec::peak(Arithmetic arithmetic) const {
  if (const PeakRate* row = find(arithmetic)) return *row;
  const auto words = [](const PeakRate& row) {
    return join_text(to_text(row.arithmetic), " ", row.dense);
  };
  fail("no promised speed of ", to_text(arithmetic), " on the ", name, "; known are ",
       join_names(peaks, words));
}

std::span<const GpuSpec> known_gpus() { return registry(); }

const GpuSpec& find_gpu(std::string_view name) {
  const std::string wanted = lower(name);
  for (const GpuSpec& gpu : registry()) {
    if (is_called(gpu, wanted)) return gpu;
  }
  const std::string near = near_matches(wanted);
  fail("no device is called \"", name, "\"", near.empty() ? "" : join_text("; near are ", near),
       "; known are ", all_names(),
       ". Others can be added from a TOML file (--devices), or measured (brrr devices)");
}

void require_consistent(const GpuSpec& gpu) {
  constexpr double kTolerance = 0.03, kLikelySparse = 1.5;
  if (gpu.clock) {
    const double ratio = gpu.peak(gpu.clock->arithmetic).dense / gpu.clock->rate();
    check(ratio < kLikelySparse, gpu.name, ": ", to_text(gpu.clock->arithmetic), " of ",
          gpu.peak(gpu.clock->arithmetic).dense, " is ", ratio,
          " times what clock x units x multiply-adds give (", gpu.clock->rate(),
          "): that is the rate with 2:4 sparsity; give the dense one, half of it");
    check(std::abs(ratio - 1) <= kTolerance, gpu.name, ": ", to_text(gpu.clock->arithmetic), " of ",
          gpu.peak(gpu.clock->arithmetic).dense, " is not what its clock and units give, ",
          gpu.clock->rate(), "; one of the numbers is wrong");
  }
  const PeakRate *single = gpu.find(Arithmetic::fp32), *half = gpu.find(Arithmetic::bf16),
                 *eighth = gpu.find(Arithmetic::fp8);
  check(!single || !half || half->dense >= single->dense * 0.99, gpu.name,
        ": bf16 is slower than fp32; are the two exchanged?");
  check(!half || !eighth || eighth->dense >= half->dense, gpu.name,
        ": fp8 is slower than bf16; are the two exchanged?");
  check(gpu.memory > Bytes(0) && gpu.bandwidth > BytesPerSecond(0), gpu.name,
        ": memory and bandwidth must be positive");
}

void register_gpu(GpuSpec gpu) {
  check(std::none_of(registry().begin(), registry().end(),
                     [&](const GpuSpec& known) { return is_called(known, lower(gpu.name)); }),
        "the name \"", gpu.name, "\" is taken by a device of the table; choose another");
  check(registry().size() < kMostDevices, "there is room for ", kMostDevices,
        " devices and no more");
  require_consistent(gpu);
  registry().push_back(std::move(gpu));
}

PromisedRate promised_rate(std::string_view device, DType dtype) {
  const GpuSpec& gpu = find_gpu(device);
  const PeakRate& row = gpu.peak(arithmetic_of(dtype));
  return {.device = gpu.name, .dtype = dtype, .dense = row.dense, .source = row.source};
}

DeviceMemory device_memory(std::string_view device) {
  const GpuSpec& gpu = find_gpu(device);
  return {.device = gpu.name,
          .size = gpu.memory,
          .bandwidth = gpu.bandwidth,
          .source = gpu.memory_source};
}

const GpuSpec* find_by_driver_name(std::string_view reported) {
  for (const GpuSpec& gpu : registry()) {
    if (std::find(gpu.driver_names.begin(), gpu.driver_names.end(), reported) !=
        gpu.driver_names.end())
      return &gpu;
  }
  return nullptr;
}

std::string_view device_from_driver_name(std::string_view reported) {
  if (const GpuSpec* gpu = find_by_driver_name(reported)) return gpu->name;
  fail("the driver calls this device \"", reported,
       "\", which is not in the hardware table; known are ", all_names(),
       "; measure its peak instead of guessing it");
}

double ridge_flops_per_byte(std::string_view device, DType dtype) {
  return promised_rate(device, dtype).dense.value() / device_memory(device).bandwidth.value();
}

}  // namespace brrr::hardware
