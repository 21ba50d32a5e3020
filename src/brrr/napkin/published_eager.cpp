// PyTorch with sharded parameters, and whole runs whose layout is public in parts. Elementwise ops are launched one by
// one where nothing compiles them, and attention is FlashAttention-2 at best. Most of these are bounds: the kernels of
// a system can be priced, its waiting cannot.
#include "brrr/napkin/published_run.h"

namespace brrr {
namespace {

SystemTraits eager() {
  SystemTraits system;
  system.fuse = false;
  system.attention = AttentionKernel::flash2;
  return system;
}

constexpr const char* kWaiting =
    "kernels and gathers are priced and taken as overlapped; launches of eager Python and gathers "
    "that are waited for come on top";
constexpr const char* kBiasedAttention =
    "56 % of the FLOPs are attention, and it ran with ALiBi in a Triton kernel of 2022, for which "
    "no "
    "rate is published";
constexpr const char* kWholeHours =
    "only hours of the whole run are published: no speed of a step, no share of the hours that "
    "steps had, and of the layout a part";

// ---- MosaicML: FSDP gathers f32 parameters (mixed precision \"DEFAULT\") and reduces gradients in bf16.
void add_mosaic(std::vector<PublishedRun>& runs) {
  const auto mpt = [](int64_t width, int64_t layers, int64_t context) {
    Gpt2Config config = gpt_shape(width, layers, width / (width < 1024 ? 64 : 128), 50368, context);
    config.bias = false;
    return config;
  };
  SystemTraits system = eager();
  system.gather_bytes = 4;
  const auto add = [&](const char* id, const char* what, const Gpt2Config& model, const char* gpu,
                       int64_t count, int64_t seq, int64_t micro, RematPolicy recompute,
                       const Claim& claim) {
    runs.push_back({.id = id,
                    .what = what,
                    .source = "llm-foundry",
                    .model = model,
                    .gpu = gpu,
                    .count = count,
                    .seq = seq,
                    .global_batch = count * micro,
                    .micro_batch = micro,
                    .layout = {.zero = 3},
                    .recompute = recompute,
                    .system = system,
                    .claim = claim});
  };
  const auto bound = [](double tokens, const char* reason) {
    return Claim{Shown::tokens, tokens, CaseClass::bound, reason};
  };
  add("A19", "MPT-7B, FSDP, 8 H100", mpt(4096, 32, 2048), "h100", 8, 2048, 6, RematPolicy::none,
      bound(10643, kWaiting));
  add("A19", "MPT-70B, FSDP, recomputed, 512 H100", mpt(8192, 80, 2048), "h100", 512, 2048, 8,
      RematPolicy::full, bound(1007, kWaiting));
  add("A19", "MPT-13B, FSDP, recomputed, 8 A100-40", mpt(5120, 40, 2048), "a100-40", 8, 2048, 4,
      RematPolicy::full, bound(1668, kWaiting));
  add("A20", "MPT-7B at 65,536 tokens, recomputed, 8 H100", mpt(4096, 32, 65536), "h100", 8, 65536,
      1, RematPolicy::full, bound(1956, kBiasedAttention));
  add("A20", "MPT-125M, 8 A100-80", mpt(768, 12, 2048), "a100-80", 8, 2048, 40, RematPolicy::none,
      bound(142830, kWaiting));
}

// ---- torchtitan on H100s of 96 GB at 500 W. Its selective policy keeps every other product of a layer: of q, k, v, o,
// gate, up and down those of k, o and up run again.
void add_torchtitan(std::vector<PublishedRun>& runs) {
  const LlamaConfig model = llama_preset("llama3-8b");
  const auto width = static_cast<double>(model.width), hidden = static_cast<double>(model.hidden),
             keys = width * static_cast<double>(model.kv_heads) / static_cast<double>(model.heads);
  SystemTraits system = eager();
  system.products_again = (keys + width + hidden) / (2 * width + 2 * keys + 3 * hidden);
  PublishedRun run{.id = "A22",
                   .what = "torchtitan, Llama-3.1-8B, FSDP, eager",
                   .source = "torchtitan",
                   .model = model,
                   .gpu = "h100-96",
                   .count = 8,
                   .seq = 8192,
                   .global_batch = 16,
                   .micro_batch = 2,
                   .layout = {.zero = 3},
                   .recompute = RematPolicy::selective,
                   .system = system,
                   .claim = {Shown::tokens, 5762, CaseClass::bound, kWaiting}};
  runs.push_back(run);
  run.what = "compiled";
  run.system.fuse = true;
  run.claim = {Shown::tokens, 6667, CaseClass::bound, kWaiting};
  runs.push_back(run);
}

// ---- Llama 2 and Pythia: GPU-hours of the whole run.
void add_whole_runs(std::vector<PublishedRun>& runs) {
  const auto add = [&](const char* id, const char* what, const char* source,
                       const ModelConfig& model, const char* gpu, int64_t count, int64_t seq,
                       int64_t micro, const ParallelLayout& layout, RematPolicy recompute,
                       double tokens, double hours) {
    runs.push_back({.id = id,
                    .what = what,
                    .source = source,
                    .model = model,
                    .gpu = gpu,
                    .count = count,
                    .seq = seq,
                    .global_batch = 1024,
                    .micro_batch = micro,
                    .layout = layout,
                    .recompute = recompute,
                    .system = eager(),
                    .claim = {Shown::hours, hours, CaseClass::bound, kWholeHours, tokens}});
  };
  add("A15", "Llama-2 7B, 2T tokens: hours of steps", "model card", llama_preset("llama2-7b"),
      "a100-80", 512, 4096, 2, {.zero = 3}, RematPolicy::selective, 2e12, 184320);
  add("A15", "Llama-2 70B, 2T tokens, steps at BLOOM's goodput", "model card",
      llama_preset("llama2-70b"), "a100-80", 2048, 4096, 1, {.tp = 8, .zero = 1},
      RematPolicy::selective, 2e12, 1720320);
  runs.back().claim.kind = CaseClass::predicted;
  runs.back().claim.reason = "";
  runs.back().claim.goodput = bloom_goodput();
  add("A18", "Pythia 12B, TP4, 256 A100-40: hours of steps", "Pythia",
      gpt_shape(5120, 36, 40, 50688, 2048), "a100-40", 256, 2048, 16, {.tp = 4, .zero = 1},
      RematPolicy::full, 299.9e9, 72300);
  add("A18", "Pythia 1B, 64 A100-40: hours of steps", "Pythia", gpt_shape(2048, 16, 8, 50304, 2048),
      "a100-40", 64, 2048, 16, {.zero = 1}, RematPolicy::full, 299.9e9, 4830);
}

}  // namespace

std::vector<PublishedRun> eager_runs() {
  std::vector<PublishedRun> runs;
  add_mosaic(runs);
  add_torchtitan(runs);
  add_whole_runs(runs);
  return runs;
}

std::vector<PublishedCase> eager_cases() { return cases_of(eager_runs()); }

}  // namespace brrr
