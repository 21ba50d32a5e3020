// brrr napkin op: one op on the roofline of a device.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/cli/napkin/napkin.h"
#include "brrr/plan/op_cost.h"

namespace brrr::cli {
namespace {

struct Options {
  std::string op, dtype = "bf16";
  std::vector<double> sizes;  // so that 1e9 can be written
  GpuChoice gpu;
  plan::OpSettings settings;
  bool json = false;
};

DType dtype_of(const std::string& name) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3}) {
    if (to_text(dtype) == name) return dtype;
  }
  check(name == "fp8", "--dtype ", name, ": use f32, f16, bf16 or fp8");
  return DType::f8e4m3;
}

std::vector<int64_t> whole_sizes(const std::vector<double>& given) {
  std::vector<int64_t> sizes;
  for (const double size : given) {
    check(std::abs(size) < 1e18 && size == std::floor(size), "napkin op: a size of ", size,
          " is no whole number below 1e18");
    sizes.push_back(static_cast<int64_t>(size));
  }
  return sizes;
}

// 4 b a s_q s_k d, whole, must be a 64-bit number.
void check_attention(const std::string& op, const std::vector<int64_t>& sizes) {
  if (op != "attention" || sizes.size() < 4) return;
  double flops = 4 * static_cast<double>(sizes.size() > 4 ? sizes[4] : sizes[2]);
  for (size_t i = 0; i < 4; ++i) flops *= static_cast<double>(sizes[i]);
  check(flops < 7e18, "napkin op attention: these sizes take ", flops,
        " FLOPs over the whole square; use 7e18 at most");
}

void run(const CLI::App& command, Options options) {
  if (options.op == "adamw") {  // its states are f32 whatever the model computes in
    check(command.count("--dtype") == 0 || options.dtype == "f32", "--dtype ", options.dtype,
          ": adamw's states are f32");
    options.dtype = "f32";
  }
  const hardware::GpuSpec& gpu = hardware::find_gpu(chosen_gpu(options.gpu));
  const std::vector<int64_t> sizes = whole_sizes(options.sizes);
  check_attention(options.op, sizes);
  const plan::OpAnswer a =
      plan::op_answer(options.op, sizes, dtype_of(options.dtype), gpu, options.settings);
  const plan::Quantisation& q = a.quantisation;
  if (options.json) {
    nlohmann::ordered_json json{{"op", a.op},
                                {"gpu", gpu.name},
                                {"dtype", options.dtype},
                                {"sizes", sizes},
                                {"flops", a.flops},
                                {"bytes", a.bytes},
                                {"intensity_flops_per_byte", a.intensity},
                                {"ridge_flops_per_byte", a.ridge},
                                {"regime", a.regime},
                                {"compute_seconds", a.compute_seconds},
                                {"memory_seconds", a.memory_seconds},
                                {"floor_seconds", a.floor_seconds}};
    json["counted"] = {{"flops", a.flops_how}, {"bytes", a.bytes_how}};
    if (a.naive_bytes > 0) json["naive_bytes"] = a.naive_bytes;
    if (q.tiles > 0)
      json["quantisation"] = {{"tiles", q.tiles}, {"waves", q.waves}, {"efficiency", q.efficiency}};
    std::puts(json.dump(1).c_str());
    return;
  }
  report::Table table = napkin_table(fmt::format("{} in {} on {}", a.op, options.dtype, gpu.name));
  table.row("FLOPs", fmt::format("{:.6g} FLOP", a.flops), a.flops_how);
  table.row("bytes", fmt::format("{:.6g} B", a.bytes), a.bytes_how);
  if (a.naive_bytes > 0)
    table.row("in separate ops", fmt::format("{:.6g} B", a.naive_bytes),
              fmt::format("{}: {:.2f} x", a.naive_how, a.naive_bytes / a.bytes));
  table.row("intensity", fmt::format("{:.{}f} FLOP/B", a.intensity, a.intensity < 10 ? 3 : 2),
            "FLOPs / bytes");
  table.row("ridge", fmt::format("{:.1f} FLOP/B", a.ridge),
            fmt::format("{} / {} of {}",
                        to_text(gpu.peak(hardware::parse_arithmetic(a.arithmetic)).dense),
                        to_text(gpu.bandwidth), a.arithmetic));
  table.row("arithmetic", to_text(Seconds(a.compute_seconds)), "FLOPs / peak");
  table.row("memory", to_text(Seconds(a.memory_seconds)), "bytes / bandwidth");
  table.row("floor", to_text(Seconds(a.floor_seconds)),
            join_text("the larger: ", a.regime, "-bound"));
  if (q.tiles > 0)
    table.row("tiles and waves", fmt::format("{:.1f} %", 100 * q.efficiency),
              fmt::format("{} tiles of {} x {} in {} waves of {}", q.tiles, q.tile_rows,
                          q.tile_columns, q.waves, gpu.multiprocessors));
  print_table(table);
}

}  // namespace

void add_napkin_op(CLI::App& napkin) {
  CLI::App* command = napkin.add_subcommand("op", "One op on the roofline of a device");
  const auto options = std::make_shared<Options>();
  std::string known;
  for (const plan::OpInfo& op : plan::napkin_ops())
    known += join_text(known.empty() ? "" : "; ", op.name, " ", op.sizes);
  command->add_option("op", options->op, known)->required();
  command->add_option("sizes", options->sizes, "As the op takes them")->required();
  command->add_option("--dtype", options->dtype, "f32, f16, bf16 or fp8")->capture_default_str();
  command->add_flag("--full", options->settings.full_square,
                    "Attention over the whole square; only what a causal mask leaves by default");
  add_gpu_choice(*command, options->gpu, false);
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n  brrr napkin op matmul 16384 8192 32768 --gpu h100\n"
      "  brrr napkin op attention 8 16 1024 64 --gpu h100 --dtype bf16\n"
      "  brrr napkin op attention 1 32 1024 128 --full --gpu h100\n"
      "  brrr napkin op swiglu 8192 4096 14336 --gpu h100\n"
      "  brrr napkin op gelu 1e8 --gpu a100-80");
  command->callback([options, command] { run(*command, *options); });
}

}  // namespace brrr::cli
