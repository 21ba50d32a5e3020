// PyTorch with sharded parameters, and whole runs whose layout is public in parts. Ops are launched one by one where
// nothing compiles them, the loss runs in f32, and attention is FlashAttention-2 at best. What cannot be counted so is
// taken from a sister run, and the claim says which.
#include "brrr/napkin/published_run.h"

namespace brrr {
namespace {

SystemTraits eager() {
  SystemTraits system;
  system.framework = Framework::eager;
  system.attention = AttentionMethod::flash2;
  return system;
}

constexpr const char* kLimitedPower =
    "no product of an H100 at 500 W is published, and switching power alone (89 % of the speed at "
    "700 W) does not explain it; its share is what the eager run takes";
// ---- MosaicML: rows of llm-foundry's table. Learned positions and biases (its counts of parameters say so), attention
// in Triton.
void add_mosaic(std::vector<PublishedRun>& runs) {
  const auto mpt = [](int64_t width, int64_t layers, int64_t context) {
    return gpt_shape(width, layers, width / (width < 1024 ? 64 : 128), 50368, context);
  };
  const auto add = [&](const char* id, const char* what, const Gpt2Config& model, const char* gpu,
                       int64_t count, int64_t seq, int64_t micro, int64_t accumulated,
                       RematPolicy recompute, const Claim& claim) {
    runs.push_back({.id = id,
                    .what = what,
                    .source = "llm-foundry",
                    .model = model,
                    .gpu = gpu,
                    .count = count,
                    .seq = seq,
                    .global_batch = count * micro * accumulated,
                    .micro_batch = micro,
                    .layout = {.zero = 3},
                    .recompute = recompute,
                    .system = mosaic_system(),
                    .claim = claim});
  };
  const SisterRuns sisters = sister_runs();
  const double hopper_2023 = reached_share(sisters.mpt_2023);
  const auto on_h100 = [&](double tokens) {
    return Claim{.shown = Shown::tokens,
                 .value = tokens,
                 .software = hopper_2023,
                 .calibration =
                     "libraries of 2023 on Hopper from MPT-3B at 512 tokens, 27,965 "
                     "tokens/s; attention in Triton from MPT-1B at 65,536, 5,506"};
  };
  add("A19", "MPT-7B, FSDP, 8 H100", mpt(4096, 32, 2048), "h100", 8, 2048, 6, 1, RematPolicy::none,
      on_h100(10643));
  add("A19", "MPT-70B, FSDP, recomputed, 512 H100", mpt(8192, 80, 2048), "h100", 512, 2048, 8, 1,
      RematPolicy::full, on_h100(1007));
  add("A19", "MPT-13B, FSDP, recomputed, 8 A100-40", mpt(5120, 40, 2048), "a100-40", 8, 2048, 4, 16,
      RematPolicy::full,
      {.shown = Shown::tokens,
       .value = 1668,
       .software = reached_share(sisters.mpt_full),
       .calibration =
           "this model on these eight devices, whose 40 GB it fills, from its run at 512 "
           "tokens, 1,763 tokens/s"});
  runs.back().system.autocast = false;
  runs.back().system.gather_bytes = 2;
  add("A20", "MPT-7B at 65,536 tokens, recomputed, 8 H100", mpt(4096, 32, 65536), "h100", 8, 65536,
      1, 2, RematPolicy::full, on_h100(1956));
  add("A20", "MPT-125M, 8 A100-80", mpt(768, 12, 2048), "a100-80", 8, 2048, 40, 2,
      RematPolicy::none,
      {.shown = Shown::tokens,
       .value = 142830,
       .calibration = "attention in Triton on an A100 from MPT-1B at 65,536 tokens, 3,044 "
                      "tokens/s"});
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
                   .system = system};
  PublishedRun compiled = run;
  compiled.what = "compiled";
  compiled.system.framework = Framework::compiled;
  compiled.claim = {Shown::tokens, 6667, CaseClass::bound, kLimitedPower};
  run.claim = {.shown = Shown::tokens,
               .value = 5762,
               .software = reached_share(compiled),
               .calibration =
                   "its machine, 500 W and memory of 2.4 TB/s, from the same run compiled, "
                   "which stays a bound: what eager costs beside it is predicted"};
  runs.push_back(run);
  runs.push_back(compiled);
}

// ---- Llama 2 and Pythia: GPU-hours of the whole run. Of Pythia the share of the speed and of the hours are one number,
// and it is that of a sister.
void add_whole_runs(std::vector<PublishedRun>& runs) {
  const auto add_llama = [&](PublishedRun run) {
    run.claim.goodput = bloom_goodput();
    run.claim.calibration = "goodput from BLOOM (A17); the layout is assumed";
    runs.push_back(run);
  };
  add_llama(llama2_run("Llama-2 7B, 2T tokens, steps at BLOOM's goodput", "llama2-7b", 184320));
  PublishedRun large =
      llama2_run("Llama-2 70B, 2T tokens, steps at BLOOM's goodput", "llama2-70b", 1720320);
  large.count = 2048, large.micro_batch = 1, large.layout = {.tp = 8, .zero = 1};
  add_llama(large);
  const auto add = [&](PublishedRun run, double share) {
    run.claim.software = share;
    run.claim.calibration =
        "speed and goodput together from Pythia 6.9B, 33,500 GPU-h (recalled, not read again)";
    runs.push_back(run);
  };
  const double pythia = reached_share(sister_runs().pythia_7b);
  add(pythia_run("Pythia 12B, TP4, 256 A100-40: all hours", gpt_shape(5120, 36, 40, 50688, 2048),
                 256, 4, 8, 72300),
      pythia);
  add(pythia_run("Pythia 1B, 64 A100-40: all hours", gpt_shape(2048, 16, 8, 50304, 2048), 64, 1, 16,
                 4830),
      pythia);
}

}  // namespace

// FSDP 1 gathers f32 parameters (mixed precision "DEFAULT") layer by layer as one tensor and reduces gradients in bf16.
SystemTraits mosaic_system() {
  SystemTraits system;
  system.framework = Framework::eager;
  system.attention = AttentionMethod::triton;
  system.gather_bytes = 4;
  system.flat_parameters = true;
  system.node_rings = true;
  return system;
}

// The layout is not published: parameters sharded over 512 devices, two sequences of 4096 on each.
PublishedRun llama2_run(const char* what, const char* preset, double hours) {
  return {.id = "A15",
          .what = what,
          .source = "model card",
          .model = llama_preset(preset),
          .gpu = "a100-80",
          .count = 512,
          .seq = 4096,
          .global_batch = 1024,
          .micro_batch = 2,
          .layout = {.zero = 3},
          .recompute = RematPolicy::selective,
          .system = eager(),
          .claim = {.shown = Shown::hours, .value = hours, .tokens = 2e12}};
}

// GPT-NeoX as its configurations have it: f16, layers recomputed, tensor parallelism without sequences split.
PublishedRun pythia_run(const char* what, const Gpt2Config& model, int64_t count, int64_t tp,
                        int64_t micro, double hours) {
  ParallelLayout layout{.tp = tp, .zero = 1};
  layout.sequence_parallel = false;
  return {.id = "A18",
          .what = what,
          .source = "Pythia",
          .model = model,
          .gpu = "a100-40",
          .count = count,
          .seq = 2048,
          .global_batch = 1024,
          .micro_batch = micro,
          .layout = layout,
          .recompute = RematPolicy::full,
          .system = eager(),
          .claim = {.shown = Shown::hours, .value = hours, .tokens = 299.9e9},
          .precision = Precision::f16_mixed};
}

std::vector<PublishedRun> eager_runs() {
  std::vector<PublishedRun> runs;
  add_mosaic(runs);
  add_torchtitan(runs);
  add_whole_runs(runs);
  return runs;
}

std::vector<PublishedCase> eager_cases() { return cases_of(eager_runs()); }

}  // namespace brrr
