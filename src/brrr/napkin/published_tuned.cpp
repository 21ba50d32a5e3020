// Tuned systems of today: fused elementwise kernels, attention without scores in memory, traffic behind arithmetic.
#include "brrr/napkin/published_run.h"

namespace brrr {
namespace {

void add_megatron_core(std::vector<PublishedRun>& runs) {
  const auto add = [&](const char* what, const Gpt2Config& model, int64_t count, int64_t batch,
                       const ParallelLayout& layout, double tflops) {
    runs.push_back({.id = "A21",
                    .what = what,
                    .source = "Megatron-LM",
                    .model = model,
                    .gpu = "h100",
                    .count = count,
                    .seq = 4096,
                    .global_batch = batch,
                    .micro_batch = 1,
                    .layout = layout,
                    .claim = {Shown::tflops, tflops}});
  };
  add("7.1B, TP2, 96 H100: predicted rate", gpt_shape(4096, 30, 32, 131072), 96, 192,
      {.tp = 2, .zero = 1}, 465.9);
  add("70B, TP8 PP2, 768 H100", gpt_shape(8192, 84, 64, 131072), 768, 384,
      {.tp = 8, .pp = 2, .zero = 1}, 419.7);
  add("314B, TP8 PP8, 3072 H100", gpt_shape(16384, 96, 128, 131072), 3072, 1536,
      {.tp = 8, .pp = 8, .zero = 1}, 474.4);
}

void add_dgx_cloud(std::vector<PublishedRun>& runs) {
  const auto add = [&](const char* id, const char* what, const char* model, int64_t count,
                       int64_t batch, const ParallelLayout& layout, double seconds) {
    runs.push_back({.id = id,
                    .what = what,
                    .source = "DGX Cloud",
                    .model = llama_preset(model),
                    .gpu = "h100",
                    .count = count,
                    .seq = 8192,
                    .global_batch = batch,
                    .micro_batch = 1,
                    .layout = layout,
                    .claim = {Shown::seconds, seconds}});
  };
  const ParallelLayout cut{.tp = 4, .pp = 4, .cp = 2, .zero = 1, .interleave = 5};
  add("A23", "Llama-3.1-8B, CP2: a step", "llama3-8b", 8, 128, {.cp = 2, .zero = 1}, 12.78);
  add("A23", "Llama-3.1-70B, TP4 PP4 CP2: a step", "llama3-70b", 64, 128, cut, 14.61);
  add("A24", "the same on 2048 GPUs", "llama3-70b", 2048, 4096, cut, 14.84);
}

void add_small_systems(std::vector<PublishedRun>& runs) {
  const auto add = [&](const char* id, const char* what, const char* source,
                       const ModelConfig& model, const char* gpu, int64_t count, int64_t batch,
                       int64_t micro, RematPolicy recompute, Precision precision, double seconds) {
    runs.push_back({.id = id,
                    .what = what,
                    .source = source,
                    .model = model,
                    .gpu = gpu,
                    .count = count,
                    .seq = 1024,
                    .global_batch = batch,
                    .micro_batch = micro,
                    .layout = {.zero = count > 1 ? 1 : 0},
                    .recompute = recompute,
                    .claim = {Shown::seconds, seconds},
                    .precision = precision});
  };
  add("A25", "GPT-2 124M, 8 A100: a step", "llm.c", gpt2_preset("gpt2-124m"), "a100-80", 8, 512, 64,
      RematPolicy::none, Precision::bf16_mixed, 0.300);
  add("A26", "GPT-2 1558M, 8 H100: a step", "llm.c", gpt2_preset("gpt2-1558m"), "h100", 8, 1024, 16,
      RematPolicy::none, Precision::bf16_mixed, 2.80);
  add("A28", "Qwen2.5-0.5B, one RTX 4090, fp8, recomputed: a step", "llmq",
      llama_preset("qwen2.5-0.5b"), "rtx4090", 1, 64, 8, RematPolicy::full, Precision::fp8_mixed,
      1.709);
  add("A29", "Qwen2.5-1.5B, one H100: a step", "llmq", llama_preset("qwen2.5-1.5b"), "h100", 1, 512,
      32, RematPolicy::none, Precision::bf16_mixed, 8.906);
}

// MaxText's share of its speed is that of the smaller model on the same chips.
void add_maxtext(std::vector<PublishedRun>& runs) {
  PublishedRun run = maxtext_run("Llama-3.1-70B, 256 v6e: predicted speed of a chip",
                                 llama_preset("llama3-70b"), 5, false);
  run.claim = {.shown = Shown::tokens,
               .value = 960,
               .software = reached_share(sister_runs().maxtext_8b),
               .calibration =
                   "no product and no attention measured on a v6e is published; speed of "
                   "MaxText there from Llama-3.1-8B on 256 of them, 7,207 tokens/s"};
  runs.push_back(run);
}

}  // namespace

// On chips of one slice, parameters sharded over all of them.
PublishedRun maxtext_run(const char* what, const LlamaConfig& model, int64_t micro,
                         bool keeps_output) {
  constexpr int64_t kChips = 256;
  const auto width = static_cast<double>(model.width), hidden = static_cast<double>(model.hidden),
             keys = width * static_cast<double>(model.kv_heads) / static_cast<double>(model.heads);
  SystemTraits system;
  system.products_again =
      -(width + 2 * keys + (keeps_output ? width : 0)) / (2 * width + 2 * keys + 3 * hidden);
  return {.id = "A32",
          .what = what,
          .source = "MaxText",
          .model = model,
          .gpu = "tpu-v6e",
          .count = kChips,
          .seq = 8192,
          .global_batch = kChips * micro,
          .micro_batch = micro,
          .layout = {.zero = 3},
          .recompute = RematPolicy::full,
          .system = system,
          .node_size = kChips};
}

std::vector<PublishedRun> tuned_runs() {
  std::vector<PublishedRun> runs;
  add_megatron_core(runs);
  add_dgx_cloud(runs);
  add_small_systems(runs);
  add_maxtext(runs);
  return runs;
}

std::vector<PublishedCase> tuned_cases() { return cases_of(tuned_runs()); }

}  // namespace brrr
