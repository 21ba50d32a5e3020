#include "brrr/plan/gpu_rates.h"

#include <fmt/format.h>

#include <array>

namespace brrr::plan {
namespace {

constexpr double kBandwidthShare =
    0.88;  // of the data sheet: copies on an H200 reach 4.21 of 4.8 TB/s
constexpr double kUsualMatmulShare = 0.8;  // of the peak, where nobody measured the best product
constexpr double kSustainedShare =
    0.96;  // a usual large product over the best found: 764 of 794.5 TFLOP/s
constexpr double kLaunchSeconds = 2e-6;  // between two kernels of a captured graph, and their tails

// The best large product as a share of the peak.
double matmul_share(const hardware::GpuSpec& gpu) {
  const hardware::PeakRate* peak = gpu.find(hardware::Arithmetic::bf16);
  const bool is_known = peak && gpu.best_matmul > FlopsPerSecond(0);
  return is_known ? kSustainedShare * (gpu.best_matmul / peak->dense) : kUsualMatmulShare;
}

constexpr double kShortProductShare = 0.60;  // the corner of the table below: sums of 768 or fewer

// Products of other sizes as shares of the best one: cuBLAS on an H200, many rows, bf16.
hardware::RateGrid matmul_grid(double best) {
  const std::vector<double> share = {
      kShortProductShare, 0.85, 0.89, 0.755, 0.90, 0.95, 0.80, 0.92, 1.0};
  hardware::RateGrid grid{.unit = "flop/s",
                          .axes = {{"m", {1}}, {"n", {768, 3072, 8192}}, {"k", {768, 3072, 8192}}},
                          .values = {}};
  for (double part : share) grid.values.push_back(best * part);
  return grid;
}

// Causal attention as a share of the peak, by keys (1024, 4096) and head size (64, 128), forward and backward.
struct AttentionShares {
  std::initializer_list<double> forward, backward;
};
// cuDNN on an H200; FlashAttention-2 on an A100, whose matrix units are slower beside its other parts; and
// FlashAttention-2 on Hopper, which its successor's paper puts at 35 % of the peak (arXiv 2407.08608): that is the
// value for long sequences, smaller ones fall off as cuDNN does.
const AttentionShares kHopper{{0.30, 0.40, 0.42, 0.54}, {0.25, 0.36, 0.36, 0.46}},
    kAmpere{{0.38, 0.42, 0.48, 0.57}, {0.28, 0.32, 0.41, 0.47}},
    kFlash2OnHopper{{0.24, 0.29, 0.31, 0.37}, {0.19, 0.26, 0.25, 0.31}};

// FlashAttention of 2022 in Triton as a share of FlashAttention-2. No rate of it is published, but whole steps are:
// these follow from MPT-1B at 65,536 tokens on eight A100s and on eight H100s (llm-foundry's table, 3,044 and 5,506
// tokens a second and device; on Hopper all of the step at the share that MPT-3B at 512 tokens had). None of these is a
// case of `napkin check`; a test holds that the shares follow.
constexpr double kTritonOnAmpere = 0.65, kTritonOnHopper = 0.60;

hardware::RateGrid attention_grid(double peak, std::initializer_list<double> shares) {
  hardware::RateGrid grid{
      .unit = "flop/s", .axes = {{"keys", {1024, 4096}}, {"head_dim", {64, 128}}}, .values = {}};
  for (double part : shares) grid.values.push_back(peak * part);
  return grid;
}

// Attention of before FlashAttention, as FLOP/s of the count over visible pairs, so that it can stand in for the
// fused one. Every score of the square is computed, 4 d FLOPs forward and 8 d backward, by products whose short
// sum over d leaves nothing to hide the writing of a tile behind; it moves, in 16 bits,
//   forward   product 2, softmax with scale and mask 2 + 2, dropout 2 + 2 + 1 (mask), product 2
//   backward  product 2 and 2, dropout 2 + 1 + 2, softmax 2 + 2 + 2, products 2 + 2
// and counts 2 d and 5 d FLOPs a score, since half of the square is visible.
hardware::RateGrid unfused_attention_grid(double product_rate, double bandwidth, bool is_forward) {
  constexpr double kForwardBytes = 13, kBackwardBytes = 19;
  const double run = is_forward ? 4 : 8, counted = is_forward ? 2 : 5;
  hardware::RateGrid grid{.unit = "flop/s",
                          .axes = {{"keys", {1}}, {"head_dim", {32, 64, 96, 128, 192, 256}}},
                          .values = {}};
  for (const double d : grid.axes[1].points)
    grid.values.push_back(
        counted * d /
        (run * d / product_rate + (is_forward ? kForwardBytes : kBackwardBytes) / bandwidth));
  return grid;
}

// What brrr's own attention on tensor cores reached on an H200 (docs/gpu.md), by head size: 0.45 and 1.26 ms for
// 64 x 12 heads of 64 and 1024 tokens in a step, 1.6 and 4.3 ms for 8 x 16 heads of 128 and 4096 tokens.
hardware::RateGrid own_attention_grid(double peak, bool is_forward) {
  const double narrow = is_forward ? 0.23 : 0.207, wide = is_forward ? 0.34 : 0.32;
  return {.unit = "flop/s",
          .axes = {{"keys", {1}}, {"head_dim", {64, 128}}},
          .values = {peak * narrow, peak * wide}};
}

// Products in every arithmetic that the device lists, attention in 16 bits, and the roofs of both.
void add_arithmetics(const hardware::GpuSpec& gpu, hardware::Rates& rates) {
  struct Named {
    hardware::Arithmetic arithmetic;
    const char* name;
    bool has_attention;
  };
  constexpr Named kAll[] = {{hardware::Arithmetic::tf32, "tf32", false},
                            {hardware::Arithmetic::fp16, "f16", true},
                            {hardware::Arithmetic::bf16, "bf16", true},
                            {hardware::Arithmetic::fp8, "fp8", false}};
  for (const Named& each : kAll) {
    const hardware::PeakRate* peak = gpu.find(each.arithmetic);
    if (!peak) continue;
    const double dense = peak->dense.value();
    rates.grids[join_text("peak.", each.name)] = hardware::constant_rate("flop/s", dense);
    for (const char* layout : {"nn", "nt", "tn"})
      rates.grids[join_text("matmul.", layout, ".", each.name)] =
          matmul_grid(dense * matmul_share(gpu));
    if (!each.has_attention) continue;
    rates.grids[join_text("attention.", each.name)] = own_attention_grid(dense, true);
    rates.grids[join_text("attention_backward.", each.name)] = own_attention_grid(dense, false);
  }
}

const char* attention_assumption(AttentionMethod attention) {
  switch (attention) {
    case AttentionMethod::current: break;
    case AttentionMethod::flash2:
      return "causal attention at 19 to 57 % of the peak, as FlashAttention-2 on an H100 and an "
             "A100";
    case AttentionMethod::unfused:
      return "attention as separate kernels over the whole square: 13 bytes a score forward, 19 "
             "backward";
    case AttentionMethod::triton:
      return "causal attention at 11 to 37 % of the peak, as a Triton kernel of 2022 reached in "
             "MPT-1B at 65,536 tokens";
  }
  return "causal attention at 25 to 57 % of the peak by length and head size, as cuDNN on an H200 "
         "and FlashAttention-2 on an A100";
}

}  // namespace

std::string_view to_text(AttentionMethod kernel) {
  constexpr std::array<std::string_view, 4> names = {"current", "flash2", "unfused", "triton"};
  return names[static_cast<size_t>(kernel)];
}

AttentionMethod parse_attention_kernel(std::string_view name) {
  using enum AttentionMethod;
  for (AttentionMethod kernel : {current, flash2, unfused, triton}) {
    if (to_text(kernel) == name) return kernel;
  }
  fail("there is no attention \"", name, "\"; use current, flash2, unfused or triton");
}

hardware::Arithmetic arithmetic_of(compiler::Precision precision) {
  switch (precision) {
    case compiler::Precision::f32: return hardware::Arithmetic::fp32;
    case compiler::Precision::bf16_mixed: return hardware::Arithmetic::bf16;
    case compiler::Precision::f16_mixed: return hardware::Arithmetic::fp16;
    case compiler::Precision::fp8_mixed: return hardware::Arithmetic::fp8;
  }
  fail("a precision that is none");
}

std::vector<std::string> gpu_rate_assumptions(const hardware::GpuSpec& gpu,
                                              compiler::Precision precision,
                                              AttentionMethod attention) {
  const hardware::Arithmetic arithmetic = arithmetic_of(precision);
  const hardware::PeakRate& peak = gpu.peak(arithmetic);
  return {fmt::format("large {} products at {:.0f} % of the dense peak of {} ({}); smaller ones at "
                      "60 to 95 % of that, as cuBLAS on an H200",
                      hardware::to_text(arithmetic), 100 * matmul_share(gpu), to_text(peak.dense),
                      gpu.best_matmul > FlopsPerSecond(0) ? gpu.best_matmul_source
                                                          : "a usual share, not measured"),
          attention_assumption(attention),
          fmt::format("memory at {:.0f} % of {}, {:.0f} us between kernels", 100 * kBandwidthShare,
                      to_text(gpu.bandwidth), 1e6 * kLaunchSeconds),
          fmt::format("uncalibrated: expect +-{:.0f} % for a tuned system, more for others",
                      100 * kUncalibratedBand)};
}

double copy_rate(const hardware::GpuSpec& gpu) { return gpu.bandwidth.value() * kBandwidthShare; }

hardware::Rates gpu_rates(const hardware::GpuSpec& gpu, compiler::Precision precision,
                          AttentionMethod kernel) {
  const double peak = gpu.peak(arithmetic_of(precision)).dense.value();
  const hardware::PeakRate* single = gpu.find(hardware::Arithmetic::fp32);
  const double cores = single ? single->dense.value() : peak / 16;
  const double bandwidth = copy_rate(gpu);
  hardware::Rates rates = hardware::rates_from_peaks(
      gpu.name,
      {.flops_per_second = cores, .bytes_per_second = bandwidth, .launch_seconds = kLaunchSeconds});
  const double best = peak * matmul_share(gpu);
  for (const char* layout : {"matmul.nn", "matmul.nt", "matmul.tn"})
    rates.grids[layout] = matmul_grid(best);
  // What is not in the type of the policy runs in bf16 or, in an f32 program, in f32: the grid has the rate
  // of the policy, and other types are slower by the ratio of their peaks.
  const auto scale_of = [&](hardware::Arithmetic arithmetic) {
    const hardware::PeakRate* other = gpu.find(arithmetic);
    return hardware::constant_rate("ratio", other ? other->dense.value() / peak : 1);
  };
  rates.grids["scale.matmul.bf16"] = scale_of(hardware::Arithmetic::bf16);
  rates.grids["scale.matmul.f16"] = scale_of(hardware::Arithmetic::fp16);
  rates.grids["scale.matmul.fp8"] = scale_of(hardware::Arithmetic::fp8);
  // Attention runs in 16 bits under every mixed policy.
  const hardware::PeakRate* low =
      precision == compiler::Precision::f32 ? single : gpu.find(hardware::Arithmetic::bf16);
  const double attention = low ? low->dense.value() : peak;
  const bool is_ampere = !gpu.find(hardware::Arithmetic::fp8),
             is_triton = kernel == AttentionMethod::triton;
  const AttentionShares& shares = is_ampere                                        ? kAmpere
                                  : kernel == AttentionMethod::flash2 || is_triton ? kFlash2OnHopper
                                                                                   : kHopper;
  const double reached = !is_triton ? 1 : is_ampere ? kTritonOnAmpere : kTritonOnHopper;
  rates.grids["attention"] = attention_grid(attention * reached, shares.forward);
  rates.grids["attention_backward"] = attention_grid(attention * reached, shares.backward);
  if (kernel == AttentionMethod::unfused) {
    const double products = attention * matmul_share(gpu) * kShortProductShare;
    rates.grids["attention"] = unfused_attention_grid(products, bandwidth, true);
    rates.grids["attention_backward"] = unfused_attention_grid(products, bandwidth, false);
  }
  rates.grids["tile.other"] =
      hardware::constant_rate("element/s", cores / 4);  // an op as two multiply-adds
  rates.source = join_text("hardware table: ", gpu.name, ", attention ", to_text(kernel));
  return rates;
}

hardware::Rates own_gpu_rates(const hardware::GpuSpec& gpu) {
  hardware::Rates rates = gpu_rates(gpu, compiler::Precision::f32);
  // Bringing an operand into place is an instruction of many that hide behind the memory that it waits for.
  const double instructions = rates.number("peak.f32") / 2;
  for (const char* move : {"tile.convert", "tile.cast", "tile.copy", "tile.spread", "tile.gather"})
    rates.grids[move] = hardware::constant_rate("element/s", instructions);
  add_arithmetics(gpu, rates);
  rates.source =
      join_text("hardware table: ", gpu.name,
                ", shares of its peaks that products, brrr's attention and copies reached "
                "on an H200");
  return rates;
}

}  // namespace brrr::plan
