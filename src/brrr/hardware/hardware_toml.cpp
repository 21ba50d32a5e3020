// Devices read from TOML: the built-in table (hardware.toml) and files of users have the same form.
#include <cstdio>

#include "brrr/base/embedded_text.h"
#include "brrr/base/error.h"
#include "brrr/base/toml_entry.h"
#include "brrr/hardware/hardware_table.h"

namespace brrr::hardware {
namespace {

Headline read_headline(TomlEntry& entry) {
  const std::string word = entry.text("headline");
  check(word == "dense" || word == "sparse", entry.where(), ": headline is \"", word,
        "\"; say \"dense\" where the rates are dense, or \"sparse\" where they are with 2:4 "
        "sparsity and "
        "have to be halved");
  return word == "dense" ? Headline::dense : Headline::sparse_halved;
}

// A rate is a number, with headline and source of the whole entry, or a table that has all three.
std::optional<PeakRate> read_peak(TomlEntry& entry, Arithmetic arithmetic) {
  const std::string key = join_text(to_text(arithmetic), "_tflops");
  PeakRate peak{.arithmetic = arithmetic,
                .dense = {},
                .accumulate = arithmetic == Arithmetic::int8 ? "int32" : "fp32"};
  if (std::optional<TomlEntry> own = entry.entry(key)) {
    peak.dense = FlopsPerSecond(own->required("dense") * 1e12);
    peak.headline = read_headline(*own);
    peak.source = own->text("source");
    own->require_all_used();
    return peak;
  }
  const auto tflops = entry.number(key);
  if (!tflops) return std::nullopt;
  peak.source = entry.text("source");
  // Only matrix units know sparsity.
  const bool halve =
      read_headline(entry) == Headline::sparse_halved && arithmetic != Arithmetic::fp32;
  peak.headline = halve ? Headline::sparse_halved : Headline::dense;
  peak.dense = FlopsPerSecond(*tflops * 1e12 / (halve ? 2 : 1));
  return peak;
}

Link read_link(TomlEntry& entry) {
  const auto link_of = [](std::string name, std::optional<double> gb_s) {
    return Link{.name = std::move(name), .both_ways = BytesPerSecond(gb_s.value_or(0) * 1e9)};
  };
  std::optional<TomlEntry> own = entry.entry("link");
  if (!own) return link_of("link", entry.number("link_gb_s"));
  Link link = link_of(own->text("name"), own->number("gb_s"));
  own->require_all_used();
  return link;
}

std::optional<ClockPeak> read_clock(TomlEntry& entry, const GpuSpec& gpu) {
  const auto clock_of = [](Arithmetic arithmetic, double mhz, double units, double fma) {
    return ClockPeak{.arithmetic = arithmetic,
                     .clock_hertz = mhz * 1e6,
                     .units = static_cast<int64_t>(units),
                     .fma_per_cycle = static_cast<int64_t>(fma)};
  };
  if (std::optional<TomlEntry> own = entry.entry("clock")) {
    const Arithmetic arithmetic = parse_arithmetic(own->text("arithmetic"));
    const double mhz = own->required("mhz"), units = own->required("units"),
                 fma = own->required("fma_per_cycle");
    own->require_all_used();
    return clock_of(arithmetic, mhz, units, fma);
  }
  const auto mhz = entry.number("clock_mhz"), units = entry.number("units"),
             fma = entry.number("fma_per_cycle");
  check(mhz.has_value() == units.has_value() && mhz.has_value() == fma.has_value(), entry.where(),
        ": clock_mhz, units and fma_per_cycle belong together");
  if (!mhz || !units || !fma) return std::nullopt;
  return clock_of(gpu.find(Arithmetic::bf16) ? Arithmetic::bf16 : gpu.peaks.front().arithmetic,
                  *mhz, *units, *fma);
}

// What a kernel must fit into.
void read_chip(TomlEntry& entry, GpuSpec& gpu) {
  const auto bytes = [&](std::string_view key, double unit) {
    return Bytes(static_cast<int64_t>(entry.number(key).value_or(0) * unit));
  };
  constexpr double kKiB = 1 << 10, kMiB = 1 << 20;
  gpu.multiprocessors = static_cast<int>(entry.number("multiprocessors").value_or(0));
  gpu.l2 = bytes("l2_mib", kMiB);
  gpu.l1 = bytes("l1_kib", kKiB);
  gpu.shared_per_multiprocessor = bytes("shared_kib_per_sm", kKiB);
  gpu.shared_per_block = bytes("shared_kib_per_block", kKiB);
  check(gpu.shared_per_block <= gpu.shared_per_multiprocessor, entry.where(),
        ": shared_kib_per_block is more than shared_kib_per_sm; a block runs on one SM");
  const std::string capability = entry.text_or("compute_capability", "");
  if (capability.empty()) return;
  ComputeCapability& value = gpu.compute_capability.emplace();
  char rest = 0;
  check(std::sscanf(capability.c_str(), "%d.%d%c", &value.major, &value.minor, &rest) == 2,
        entry.where(), ": compute_capability is \"", capability, "\"; write it as \"9.0\"");
}

GpuSpec read_gpu(const std::string& name, const toml::table& table, std::string_view origin) {
  TomlEntry entry(table, join_text(origin, ": [gpu.", name, "]"));
  GpuSpec gpu{.name = name, .title = entry.text_or("title", name)};
  gpu.aliases = entry.texts("aliases");
  gpu.driver_names = entry.texts("driver_names");
  if (entry.contains("headline")) read_headline(entry);  // refused even where no rate reads it
  for (int i = 0; i < kArithmetics; ++i) {
    if (auto peak = read_peak(entry, static_cast<Arithmetic>(i)))
      gpu.peaks.push_back(std::move(*peak));
  }
  check(!gpu.peaks.empty(), entry.where(), " needs a rate, bf16_tflops for one");
  const auto source_of = [&](std::string_view key) {
    return entry.contains(key) ? entry.text(key) : entry.text("source");
  };
  gpu.memory = Bytes(static_cast<int64_t>(entry.required("memory_gb") * 1e9));
  gpu.bandwidth = BytesPerSecond(entry.required("bandwidth_gb_s") * 1e9);
  gpu.memory_source = source_of("memory_source");
  gpu.link = read_link(entry);
  gpu.watts = entry.number("watts").value_or(0);
  read_chip(entry, gpu);
  if (const auto best = entry.number("best_matmul_tflops")) {
    gpu.best_matmul = FlopsPerSecond(*best * 1e12);
    gpu.best_matmul_source = source_of("best_matmul_source");
  }
  gpu.clock = read_clock(entry, gpu);
  gpu.is_estimated = entry.flag_or("estimated", false);
  entry.require_all_used();
  return gpu;
}

// In the order of the file.
std::vector<GpuSpec> read_gpus(std::string_view text, std::string_view origin) {
  const toml::table file = parse_toml(text, origin);
  const toml::table* gpus = file["gpu"].as_table();
  check(gpus && !gpus->empty(), origin, ": has no [gpu.NAME] table");
  for (const auto& [name, node] : *gpus)
    check(node.is_table(), origin, ": gpu.", name.str(), " must be a table");
  std::vector<GpuSpec> all;
  for (const NamedTable& gpu : tables_in_order(*gpus))
    all.push_back(read_gpu(gpu.name, *gpu.table, origin));
  return all;
}

}  // namespace

std::vector<GpuSpec> builtin_gpus() {
  constexpr std::string_view kTable = "hardware/hardware.toml";
  return read_gpus(embedded_text(kTable), kTable);
}

void add_gpus_from_toml(std::string_view text, std::string_view origin) {
  for (GpuSpec& gpu : read_gpus(text, origin)) register_gpu(std::move(gpu));
}

}  // namespace brrr::hardware
