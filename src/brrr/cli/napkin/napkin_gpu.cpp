// brrr napkin gpu: the hardware table, every number with where it comes from.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/cli/model_options.h"
#include "brrr/cli/napkin/napkin.h"
#include "brrr/plan/op_cost.h"

namespace brrr::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string name, devices;
  bool json = false;
};

Json json_of(const hardware::GpuSpec& gpu) {
  Json peaks = Json::array();
  for (const hardware::PeakRate& peak : gpu.peaks)
    peaks.push_back({{"arithmetic", hardware::to_text(peak.arithmetic)},
                     {"dense_flops_per_second", peak.dense.value()},
                     {"headline", hardware::to_text(peak.headline)},
                     {"accumulate", peak.accumulate},
                     {"source", peak.source}});
  Json json{{"name", gpu.name},
            {"title", gpu.title},
            {"aliases", gpu.aliases},
            {"memory_bytes", gpu.memory.value()},
            {"bytes_per_second", gpu.bandwidth.value()},
            {"memory_source", gpu.memory_source},
            {"link", gpu.link.name},
            {"link_bytes_per_second_both_ways", gpu.link.both_ways.value()},
            {"watts", gpu.watts},
            {"estimated", gpu.is_estimated},
            {"peaks", peaks}};
  if (gpu.multiprocessors > 0) json["multiprocessors"] = gpu.multiprocessors;
  if (gpu.l2 > Bytes(0)) json["l2_bytes"] = gpu.l2.value();
  if (gpu.l1 > Bytes(0)) json["l1_bytes_of_a_multiprocessor"] = gpu.l1.value();
  if (gpu.compute_capability)
    json["compute_capability"] =
        join_text(gpu.compute_capability->major, ".", gpu.compute_capability->minor);
  if (gpu.shared_per_multiprocessor > Bytes(0))
    json["shared_bytes_per_sm"] = gpu.shared_per_multiprocessor.value();
  if (gpu.shared_per_block > Bytes(0))
    json["shared_bytes_per_block"] = gpu.shared_per_block.value();
  if (gpu.clock) json["clock_flops_per_second"] = gpu.clock->rate().value();
  if (gpu.best_matmul > FlopsPerSecond(0))
    json["best_matmul_flops_per_second"] = gpu.best_matmul.value();
  return json;
}

std::string tflops(const hardware::GpuSpec& gpu, hardware::Arithmetic arithmetic) {
  const hardware::PeakRate* peak = gpu.find(arithmetic);
  return peak ? fmt::format("{:g}", peak->dense.value() / 1e12) : "-";
}

// One table, or two where the terminal is narrow: rates, then memory and links.
void print_all() {
  constexpr int kWide = 115;
  const std::string rates_title = "Dense TFLOP/s",
                    memory_title =
                        "memory in GB; bandwidth and links (both ways together) in GB/s; ridge in "
                        "FLOP a byte of the 16-bit peak";
  const std::vector<std::string> memory_names{"memory", "bandwidth", "link", "ridge", "headline"};
  std::vector<std::string> names{"device"};
  for (int i = 0; i < hardware::kArithmetics; ++i)
    names.emplace_back(hardware::to_text(static_cast<hardware::Arithmetic>(i)));
  const bool is_wide = output_columns() >= kWide;
  std::vector<std::string> all_names = names, rest_names{"device"};
  std::vector<std::string>& target = is_wide ? all_names : rest_names;
  target.insert(target.end(), memory_names.begin(), memory_names.end());
  report::Table rates(all_names,
                      is_wide ? join_text(rates_title, "; ", memory_title) : rates_title);
  report::Table rest(rest_names, join_text("M", memory_title.substr(1)));
  for (const hardware::GpuSpec& gpu : hardware::known_gpus()) {
    const hardware::PeakRate& half =
        gpu.peak(gpu.find(hardware::Arithmetic::bf16) ? hardware::Arithmetic::bf16
                                                      : hardware::Arithmetic::fp16);
    const double link = gpu.link.both_ways.value();
    std::vector<std::string> cells{gpu.name}, rest_cells{gpu.name};
    for (int i = 0; i < hardware::kArithmetics; ++i)
      cells.push_back(tflops(gpu, static_cast<hardware::Arithmetic>(i)));
    std::vector<std::string>& memory = is_wide ? cells : rest_cells;
    memory.push_back(fmt::format("{:g}", static_cast<double>(gpu.memory.value()) / 1e9));
    memory.push_back(fmt::format("{:g}", gpu.bandwidth.value() / 1e9));
    memory.push_back(link > 0 ? fmt::format("{:g}", link / 1e9) : "-");
    memory.push_back(fmt::format("{:.0f}", half.dense.value() / gpu.bandwidth.value()));
    memory.emplace_back(gpu.is_estimated ? "estimated" : hardware::to_text(half.headline));
    rates.add_row(std::move(cells));
    if (!is_wide) rest.add_row(std::move(rest_cells));
  }
  print_table(rates);
  if (!is_wide) {
    std::puts("");
    print_table(rest);
  }
  std::puts("");
  print_paragraph(
      "`brrr napkin gpu NAME` has the sources. A headline \"sparse, halved\" counts zeros on the "
      "data "
      "sheet; the rates here are dense.");
}

void print_one(const hardware::GpuSpec& gpu) {
  report::Table table({"arithmetic", "dense", "sums in", "headline", "source"},
                      join_text(gpu.title, " (", gpu.name, ")"));
  for (const hardware::PeakRate& peak : gpu.peaks)
    table.row(hardware::to_text(peak.arithmetic), peak.dense, peak.accumulate,
              hardware::to_text(peak.headline), peak.source);
  print_table(table);
  report::Table rest({"", "", "source"});
  rest.row("memory", to_text_decimal(gpu.memory), gpu.memory_source);
  rest.row("bandwidth", to_text(gpu.bandwidth), gpu.memory_source);
  rest.row("link", to_text(gpu.link.both_ways), join_text(gpu.link.name, ", both ways together"));
  if (gpu.multiprocessors > 0)
    rest.row("multiprocessors", gpu.multiprocessors,
             fmt::format("{} blocks keep them busy, 4 each", plan::enough_blocks(gpu)));
  if (gpu.l2 > Bytes(0)) rest.row("L2 cache", to_text(gpu.l2), "of the chip");
  if (gpu.l1 > Bytes(0))
    rest.row("L1 cache", to_text(gpu.l1), "of a multiprocessor, shared memory included");
  if (gpu.shared_per_multiprocessor > Bytes(0))
    rest.row("shared memory", to_text(gpu.shared_per_multiprocessor),
             join_text("per SM; ", gpu.shared_per_block, " per block"));
  if (gpu.compute_capability)
    rest.row("compute capability",
             join_text(gpu.compute_capability->major, ".", gpu.compute_capability->minor),
             "NVIDIA's list of CUDA GPUs");
  if (gpu.watts > 0) rest.row("power", fmt::format("{} W", gpu.watts), "the board's limit");
  if (gpu.clock)
    rest.row("clock x units x 2 FMA", to_text(gpu.clock->rate()),
             fmt::format("{:.0f} MHz x {} x {} x 2, {}: {:+.2f} % from the table",
                         gpu.clock->clock_hertz / 1e6, gpu.clock->units, gpu.clock->fma_per_cycle,
                         hardware::to_text(gpu.clock->arithmetic),
                         100 * (gpu.peak(gpu.clock->arithmetic).dense / gpu.clock->rate() - 1)));
  if (gpu.best_matmul > FlopsPerSecond(0))
    rest.row("best bf16 product", to_text(gpu.best_matmul), gpu.best_matmul_source);
  std::puts("");
  print_table(rest);
}

void run(const Options& options) {
  if (!options.devices.empty())
    hardware::add_gpus_from_toml(read_file(options.devices), options.devices);
  if (options.name.empty()) {
    if (!options.json) return print_all();
    Json all = Json::array();
    for (const hardware::GpuSpec& gpu : hardware::known_gpus()) all.push_back(json_of(gpu));
    std::puts(all.dump(1).c_str());
    return;
  }
  const hardware::GpuSpec& gpu = hardware::find_gpu(options.name);
  options.json ? static_cast<void>(std::puts(json_of(gpu).dump(1).c_str())) : print_one(gpu);
}

}  // namespace

void add_napkin_gpu(CLI::App& napkin) {
  CLI::App* command = napkin.add_subcommand("gpu", "The hardware table, with sources");
  const auto options = std::make_shared<Options>();
  command->add_option("name", options->name, "One device, in full");
  command->add_option("--devices", options->devices, "TOML file with devices of your own");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer("Examples:\n  brrr napkin gpu\n  brrr napkin gpu h100");
  command->callback([options] { run(*options); });
}

}  // namespace brrr::cli
