// Devices of a user, read from TOML.
#include <toml++/toml.h>

#include <algorithm>

#include "brrr/account/hardware_table.h"
#include "brrr/base/error.h"

namespace brrr {
namespace {

// One [gpu.NAME] table, whose keys are taken one by one: what is left over is a slip of the pen.
class Entry {
 public:
  Entry(const toml::table& table, const std::string& name, std::string_view origin)
      : table_(table), where_(join_text(origin, ": [gpu.", name, "]")) {}

  std::string text(std::string_view key) {
    used_.emplace_back(key);
    const auto value = table_[key].value<std::string>();
    if (!value) fail(where_, " needs ", key, " = \"...\"");
    return *value;
  }
  std::optional<double> number(std::string_view key) {
    used_.emplace_back(key);
    if (!table_.contains(key)) return std::nullopt;
    const auto value = table_[key].value<double>();
    check(value.has_value() && *value > 0, where_, ": ", key, " must be a positive number");
    return value;
  }
  double required(std::string_view key) {
    const std::optional<double> value = number(key);
    if (!value) fail(where_, " needs ", key);
    return *value;
  }
  void require_all_used() const {
    for (const auto& [key, value] : table_) {
      check(std::find(used_.begin(), used_.end(), key.str()) != used_.end(), where_,
            ": there is no setting \"", key.str(), "\"; the settings are ", list());
    }
  }
  const std::string& where() const { return where_; }

 private:
  std::string list() const {
    std::string text;
    for (const std::string& key : used_) text += join_text(text.empty() ? "" : ", ", key);
    return text;
  }
  const toml::table& table_;
  std::string where_;
  std::vector<std::string> used_;
};

Headline read_headline(Entry& entry) {
  const std::string word = entry.text("headline");
  check(word == "dense" || word == "sparse", entry.where(), ": headline is \"", word,
        "\"; say \"dense\" where the rates are dense, or \"sparse\" where they are with 2:4 "
        "sparsity and "
        "have to be halved");
  return word == "dense" ? Headline::dense : Headline::sparse_halved;
}

GpuSpec read_gpu(const std::string& name, const toml::table& table, std::string_view origin) {
  Entry entry(table, name, origin);
  const std::string source = entry.text("source");
  const Headline headline = read_headline(entry);
  GpuSpec gpu{.name = name, .title = name};
  for (int i = 0; i < kArithmetics; ++i) {
    const auto arithmetic = static_cast<Arithmetic>(i);
    const auto tflops = entry.number(join_text(to_text(arithmetic), "_tflops"));
    if (!tflops) continue;
    // Only matrix units know sparsity.
    const bool halve = headline == Headline::sparse_halved && arithmetic != Arithmetic::fp32;
    gpu.peaks.push_back({.arithmetic = arithmetic,
                         .dense = FlopsPerSecond(*tflops * 1e12 / (halve ? 2 : 1)),
                         .accumulate = arithmetic == Arithmetic::int8 ? "int32" : "fp32",
                         .headline = halve ? headline : Headline::dense,
                         .source = source});
  }
  check(!gpu.peaks.empty(), entry.where(), " needs a rate, bf16_tflops for one");
  gpu.memory = Bytes(static_cast<int64_t>(entry.required("memory_gb") * 1e9));
  gpu.bandwidth = BytesPerSecond(entry.required("bandwidth_gb_s") * 1e9);
  gpu.memory_source = source;
  gpu.link = {.name = "link",
              .both_ways = BytesPerSecond(entry.number("link_gb_s").value_or(0) * 1e9)};
  gpu.watts = entry.number("watts").value_or(0);
  gpu.multiprocessors = static_cast<int>(entry.number("multiprocessors").value_or(0));
  gpu.l2 = Bytes(static_cast<int64_t>(entry.number("l2_mib").value_or(0) * (1 << 20)));
  gpu.l1 = Bytes(static_cast<int64_t>(entry.number("l1_kib").value_or(0) * (1 << 10)));
  gpu.best_matmul = FlopsPerSecond(entry.number("best_matmul_tflops").value_or(0) * 1e12);
  gpu.best_matmul_source = source;
  const auto mhz = entry.number("clock_mhz"), units = entry.number("units"),
             fma = entry.number("fma_per_cycle");
  check(mhz.has_value() == units.has_value() && mhz.has_value() == fma.has_value(), entry.where(),
        ": clock_mhz, units and fma_per_cycle belong together");
  if (mhz && units && fma)
    gpu.clock = ClockPeak{
        .arithmetic = gpu.find(Arithmetic::bf16) ? Arithmetic::bf16 : gpu.peaks.front().arithmetic,
        .clock_hertz = *mhz * 1e6,
        .units = static_cast<int64_t>(*units),
        .fma_per_cycle = static_cast<int64_t>(*fma)};
  entry.require_all_used();
  return gpu;
}

}  // namespace

void add_gpus_from_toml(std::string_view text, std::string_view origin) {
  toml::table file;
  try {
    file = toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail(origin, ", line ", error.source().begin.line, ": ", error.description());
  }
  const toml::table* gpus = file["gpu"].as_table();
  check(gpus && !gpus->empty(), origin, ": has no [gpu.NAME] table");
  for (const auto& [name, node] : *gpus) {
    const toml::table* table = node.as_table();
    check(table, origin, ": gpu.", name.str(), " must be a table");
    register_gpu(read_gpu(std::string(name.str()), *table, origin));
  }
}

}  // namespace brrr
