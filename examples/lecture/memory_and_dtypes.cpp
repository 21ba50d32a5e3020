// What tensors weigh. Memory is elements times bytes per element, for parameters, gradients,
// optimizer state and activations alike; the dtype decides the bytes, and what numbers survive.
#include <fmt/format.h>

#include <algorithm>

#include "brrr/brrr.h"
#include "brrr/hardware/hardware.h"
#include "brrr/report/claims.h"

using namespace brrr;

namespace {

void make_tensors() {
  Random random(0);
  Tensor x = empty({2, 3});
  x.copy_from(truncated_normal(x.shape(), random.stream("init"), {.bounds = SigmaBounds{-2, 2}}));
  report::Table table({"made by", "gives"}, "Ways to make a tensor (f32 unless said)");
  table.row("tensor({{1, 2, 3}, {4, 5, 6}})", tensor({{1, 2, 3}, {4, 5, 6}}));
  table.row("zeros({2, 2})", zeros({2, 2}));
  table.row("ones({2, 2})", ones({2, 2}));
  table.row("normal({3})", normal({3}, random.stream("data")));
  table.row("x.copy_from(truncated_normal(...))", slice(x, 0, {.stop = 1}));
  fmt::print("{}\n", table.text());
}

// The null device holds any size: tensors there have a price and no elements.
bool weigh_tensors() {
  const Tensor x = zeros({4, 8});
  const Tensor gpt3_ffn = empty({12288 * 4, 12288}, DType::f32, Device::null());
  report::Claims claims("Bytes are elements times bytes per element");
  claims.equal("elements of zeros({4, 8})", x.numel(), 32);
  claims.equal("bytes of one f32", bit_size(x.dtype()) / 8, 4);
  claims.equal("zeros({4, 8}) in all", x.bytes(), 128_B);
  claims.equal("one feed-forward matrix of GPT-3, 49152 x 12288", gpt3_ffn.bytes(),
               2'415'919'104_B);
  claims.equal("  in binary units", to_text(gpt3_ffn.bytes()), "2304 MiB");
  claims.equal("  in decimal units", to_text_decimal(gpt3_ffn.bytes()), "2.416 GB");
  fmt::print("{}  2304 MiB are 2.25 GiB or 2.416 GB; \"2.3 GB\" mixes the two units.\n\n",
             claims.text());
  return claims.all_hold();
}

std::string number(double value) { return fmt::format("{:.5g}", value); }

bool show_dtypes() {
  report::Table table(
      {"dtype", "bytes", "largest", "smallest normal", "spacing at 1", "1e-8 becomes"},
      "Float dtypes: exponent bits give range, mantissa bits give resolution");
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    const FloatLimits limits = finfo(dtype);
    table.row(dtype, bit_size(dtype) / 8, number(limits.max), number(limits.tiny),
              number(limits.eps), fmt::format("{:.6g}", cast(tensor(1e-8), dtype).item<double>()));
  }
  fmt::print("{}\n", table.text());

  report::Claims claims("What the lecture says about them");
  claims.near("f32 largest", finfo(DType::f32).max, 3.4028e38, 1e-4);
  claims.near("f32 smallest normal", finfo(DType::f32).tiny, 1.1755e-38, 1e-4);
  claims.near("f32 spacing at 1", finfo(DType::f32).eps, 1.1921e-7, 1e-4);
  claims.near("f16 largest", finfo(DType::f16).max, 65504, 0);
  claims.near("f16 smallest normal", finfo(DType::f16).tiny, 6.1035e-5, 1e-4);
  claims.near("f16 spacing at 1", finfo(DType::f16).eps, 9.7656e-4, 1e-4);
  claims.near("bf16 largest", finfo(DType::bf16).max, 3.3895e38, 1e-4);
  claims.near("bf16 smallest normal", finfo(DType::bf16).tiny, 1.1755e-38, 1e-4);
  claims.near("bf16 spacing at 1", finfo(DType::bf16).eps, 7.8125e-3, 0);
  claims.near("1e-8 in f16 (underflow)", cast(tensor(1e-8), DType::f16).item<double>(), 0);
  claims.near("1e-8 in bf16", cast(tensor(1e-8), DType::bf16).item<double>(), 1.00117e-8, 1e-5);
  claims.near("f8e4m3 range is ±", finfo(DType::f8e4m3).max, 448, 0);
  claims.near("f8e5m2 range is ±", finfo(DType::f8e5m2).max, 57344, 0);
  fmt::print("{}\n", claims.text());
  return claims.all_hold();
}

// The ledger counts every byte on a device. The null device stands in for a GPU.
bool count_live_bytes() {
  const Device device = Device::null();
  const Bytes before = ledger(device).live();
  const Tensor moved = to(zeros({32, 32}), device);
  const Tensor made = zeros({32, 32}, {.device = device});
  report::Claims claims("Live bytes of a device");
  claims.equal("one 32 x 32 moved there and one made there", ledger(device).live() - before,
               Bytes(2 * 32 * 32 * 4));
  fmt::print("{}\n", claims.text());
  return claims.all_hold();
}

// f32 AdamW holds the parameter, its gradient and two moments: 4 + 4 + (4 + 4) bytes.
bool largest_model() {
  constexpr int64_t kBytesPerParameter = 4 + 4 + (4 + 4);
  const Bytes memory = hardware::device_memory("H100").size * 8;
  report::Claims claims("The largest model that 8 H100s can train with AdamW, done naively");
  claims.equal("bytes per parameter: 4 + 4 + (4 + 4)", kBytesPerParameter, 16);
  claims.equal("parameters in 8 x 80 GB", memory.value() / kBytesPerParameter, 40'000'000'000);
  fmt::print("{}", claims.text());
  fmt::print(
      "  bf16 parameters and gradients (2 + 2) with an f32 master copy (4) and moments (8) take\n"
      "  16 bytes as well: faster, not smaller. Activations are not in this count.\n");
  return claims.all_hold();
}

}  // namespace

int main() {
  make_tensors();
  const bool good[] = {weigh_tensors(), show_dtypes(), count_live_bytes(), largest_model()};
  return std::ranges::count(good, false) == 0 ? 0 : 1;
}
