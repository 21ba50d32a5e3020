// Runs beside those of `napkin check`: same table, same people, same machines, another size. What one of them had of
// its predicted speed is what another is predicted with; so no number is predicted from itself.
#include "brrr/napkin/published_run.h"

namespace brrr {
namespace {

// One row of llm-foundry's table: tokens a second and device on one node.
PublishedRun mosaic_row(const char* what, const Gpt2Config& model, const char* gpu, int64_t seq,
                        int64_t micro, int64_t accumulated, RematPolicy recompute, double tokens) {
  SystemTraits system = mosaic_system();
  system.autocast = std::string_view(gpu) != "a100-40";  // those rows are older: "bf16", "PURE"
  if (!system.autocast) system.gather_bytes = 2;
  return {.id = "sister",
          .what = what,
          .source = "llm-foundry",
          .model = model,
          .gpu = gpu,
          .count = 8,
          .seq = seq,
          .global_batch = 8 * micro * accumulated,
          .micro_batch = micro,
          .layout = {.zero = 3},
          .recompute = recompute,
          .system = system,
          .claim = {Shown::tokens, tokens}};
}

PublishedRun maxtext_8b() {
  PublishedRun run = maxtext_run("Llama-3.1-8B, 256 v6e", llama_preset("llama3-8b"), 4, true);
  run.claim = {Shown::tokens, 7207};
  return run;
}

}  // namespace

// Hours of Pythia are those of its paper's table, whose eight sizes add up to its total of 136,070.
SisterRuns sister_runs() {
  const auto mpt = [](int64_t width, int64_t layers, int64_t seq) {
    return gpt_shape(width, layers, width / 128, 50368, seq);
  };
  SisterRuns runs{.mpt_a100 = mosaic_row("MPT-1B at 65,536 tokens, 8 A100", mpt(2048, 24, 65536),
                                         "a100-80", 65536, 1, 2, RematPolicy::full, 3044),
                  .mpt_h100 = mosaic_row("MPT-1B at 65,536 tokens, 8 H100", mpt(2048, 24, 65536),
                                         "h100", 65536, 1, 2, RematPolicy::full, 5506),
                  .mpt_2023 = mosaic_row("MPT-3B at 512 tokens, 8 H100", mpt(2560, 32, 512), "h100",
                                         512, 40, 6, RematPolicy::none, 27965),
                  .pythia_7b = pythia_run("Pythia 6.9B, TP2, 128 A100-40",
                                          gpt_shape(4096, 32, 32, 50432, 2048), 128, 2, 8, 33500),
                  .maxtext_8b = maxtext_8b(),
                  .llama2_13b = llama2_run("Llama-2 13B, 2T tokens", "llama2-13b", 368640),
                  .mpt_pure = mosaic_row("MPT-7B, 8 A100-40", mpt(4096, 32, 2048), "a100-40", 2048,
                                         12, 4, RematPolicy::full, 3679),
                  .mpt_full = mosaic_row("MPT-13B at 512 tokens, 8 A100-40", mpt(5120, 40, 512),
                                         "a100-40", 512, 16, 16, RematPolicy::full, 1763)};
  runs.llama2_13b.claim.goodput = bloom_goodput();
  return runs;
}

}  // namespace brrr
