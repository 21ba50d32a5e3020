// Published training speeds, predicted from the hardware table alone: the model's own graph, cut as the run was,
// priced kernel by kernel. Two things are known of the systems and taken into account: whether they fused
// elementwise ops, and whether attention kept its scores in memory. What is not known stands beside the case.
#include "brrr/napkin/gpu_rates.h"
#include "brrr/napkin/published.h"
#include "brrr/napkin/run_question.h"

namespace brrr {
namespace {

constexpr double kBand = 0.15, kTera = 1e12;

enum class Shown : uint8_t {
  seconds,  // of a step
  tflops,   // of a device, recomputation counted where there is some
  tokens,   // a second and device
  hours     // of all devices, for `Run::tokens`
};

struct Batch {
  int64_t seq, global, micro;
};
struct Machine {
  const char* gpu;
  int64_t count;
};
// How the system ran its program.
struct System {
  ParallelLayout layout = {};
  RematPolicy recompute = RematPolicy::none;
  bool fuse = true;
  bool scores_in_memory = false;
  Precision precision = Precision::bf16_mixed;
};
struct Claim {
  Shown shown = Shown::seconds;
  double value = 0;
  double band = kBand;
  const char* reason = "";
  double tokens = 1e9;
};
struct Run {
  const char *id, *what, *source;
  ModelConfig model;
  Machine machine;
  Batch batch;
  System system;
  Claim claim;
};

RunAnswer answer_of(const Run& run) {
  RunQuestion q;
  q.model_name = run.what;
  q.model = run.model;
  q.tokens = run.claim.tokens;
  q.gpu = run.machine.gpu;
  q.count = run.machine.count;
  q.seq = run.batch.seq;
  q.global_batch = run.batch.global;
  q.micro_batch = run.batch.micro;
  q.layout = run.system.layout;
  q.recompute = run.system.recompute;
  q.fuse = run.system.fuse;
  q.precision = run.system.precision;
  return answer(q);
}

// Attention of before FlashAttention writes its scores and reads them again, in 16 bits. Bytes of one score:
//   forward   product 2, softmax with scale and mask 2 + 2, dropout 2 + 2 + 1 (mask), product 2
//   backward  product 2 and 2, dropout 2 + 1 + 2, softmax 2 + 2 + 2, products 2 + 2
constexpr double kScoreForward = 13, kScoreBackward = 19;

// Seconds for `bytes` a score of one layer and micro-batch, on one of tp devices.
double layer_score_seconds(const Run& run, double bytes) {
  const auto s = static_cast<double>(run.batch.seq);
  const double scores = static_cast<double>(run.batch.micro * shape_of(run.model).heads) * s * s /
                        static_cast<double>(run.system.layout.tp);
  const Rates rates = gpu_rates(find_gpu(run.machine.gpu), Precision::bf16_mixed);
  constexpr double kFarAway[] = {1e12};
  return scores * bytes / rates.grid("bandwidth").at(kFarAway);
}

double score_seconds(const Run& run, const RunAnswer& a) {
  if (!run.system.scores_in_memory) return 0;
  const double layers =
      static_cast<double>(shape_of(run.model).layers) / static_cast<double>(run.system.layout.pp);
  const bool again = run.system.recompute != RematPolicy::none;
  return static_cast<double>(a.micro_batches) * layers *
         layer_score_seconds(run, kScoreForward * (again ? 2 : 1) + kScoreBackward) /
         (1 - a.traffic.bubble);
}

double predicted(const Run& run) {
  const RunAnswer a = answer_of(run);
  const double step = a.step_seconds + score_seconds(run, a);
  const auto count = static_cast<double>(run.machine.count);
  switch (run.claim.shown) {
    case Shown::seconds: return step;
    case Shown::tokens: return a.step_tokens / step / count;
    case Shown::hours: return run.claim.tokens / a.step_tokens * step * count / 3600;
    case Shown::tflops:
      return (flops_per_token(Convention::megatron, a.facts) +
              recomputed_per_token(a.facts, run.system.recompute)) *
             a.step_tokens / step / count / kTera;
  }
  fail("a claim of no kind");
}

std::string_view unit_of(Shown shown) {
  constexpr std::string_view units[] = {"s", "TFLOP/s", "tok/s", "GPU-h"};
  return units[static_cast<size_t>(shown)];
}

Gpt2Config gpt(int64_t width, int64_t layers, int64_t heads, int64_t vocab = 51200,
               int64_t context = 4096) {
  return {.vocab = vocab, .context = context, .layers = layers, .heads = heads, .width = width};
}

// What is known to be missing where a band is wider than usual.
constexpr const char* kLibraries =
    "best products are those of libraries of 2024; Megatron itself went from 52 to 57 % of the "
    "same "
    "peak between 2021 and 2022 (A5, A9)";
constexpr const char* kHiddenGathers =
    "gathers are taken as hidden behind the arithmetic; DeepSpeed of 2021 hid a part of them: with "
    "none hidden 123 and 48 TFLOP/s";
constexpr const char* kEagerSystem =
    "elementwise ops are priced one by one; gathers of FSDP that are waited for and late launches "
    "of an eager system are not modelled";
constexpr const char* kOldAttention =
    "attention is priced as cuDNN on Hopper; the kernels of 2023 did not use its matrix units, and "
    "their rate is not in the table";
constexpr const char* kTitan =
    "not modelled: devices at 500 W of 700, attention without Hopper's matrix units, a policy that "
    "runs every other product again; the tuned system of A23 is predicted to 13 %";
constexpr const char* kWholeHours =
    "hours of the whole run beside those of its steps alone; the layout is public in parts";

// ---- Megatron of 2021 and 2022: full recomputation, or selective with sequence parallelism. Its papers name
// the fused kernels: bias with GELU, bias with dropout and sum, scale with mask and softmax.
System megatron(ParallelLayout layout, RematPolicy recompute) {
  return {.layout = layout, .recompute = recompute, .scores_in_memory = true};
}

void add_narayanan(std::vector<Run>& runs) {
  const auto add = [&](const char* id, const char* what, const Gpt2Config& model, int64_t count,
                       int64_t batch, int64_t micro, const ParallelLayout& layout,
                       const Claim& claim) {
    runs.push_back({id,
                    what,
                    "Narayanan 2021",
                    model,
                    {"a100-80", count},
                    {2048, batch, micro},
                    megatron(layout, RematPolicy::full),
                    claim});
  };
  const auto rate = [](double tflops, double band = kBand, const char* reason = "") {
    return Claim{Shown::tflops, tflops, band, reason};
  };
  const auto old = [&](double tflops) { return rate(tflops, 0.35, kLibraries); };
  // Micro-batches were not published: 1 in a pipeline, 4 elsewhere.
  const ParallelLayout whole{.sequence_parallel = false};
  add("A1", "1.7B, 32 A100: predicted rate", gpt(2304, 24, 24), 32, 512, 4, whole, old(137));
  add("A2", "7.5B, TP4, 128 A100", gpt(4096, 36, 32), 128, 512, 4,
      {.tp = 4, .sequence_parallel = false}, old(142));
  add("A3", "39.1B, TP8 PP2, 512 A100", gpt(8192, 48, 64), 512, 1536, 1,
      {.tp = 8, .pp = 2, .sequence_parallel = false}, old(138));
  add("A4", "145.6B, TP8 PP8, 1536 A100", gpt(12288, 80, 96), 1536, 2304, 1,
      {.tp = 8, .pp = 8, .sequence_parallel = false}, old(148));
  add("A5", "1008B, TP8 PP64, 3072 A100", gpt(25600, 128, 160), 3072, 3072, 1,
      {.tp = 8, .pp = 64, .sequence_parallel = false}, old(163));
  const Gpt2Config gpt3 = gpt2_preset("gpt3-175b");
  add("A7", "174.6B, PTD-P TP8 PP12, 384 A100: predicted rate", gpt3, 384, 1536, 1,
      {.tp = 8, .pp = 12, .sequence_parallel = false}, old(153));
  add("A7", "ZeRO-3, micro-batch 4, 384 A100", gpt3, 384, 1536, 4, {.zero = 3},
      rate(144, 0.6, kHiddenGathers));
  add("A7", "ZeRO-3, micro-batch 1, 1536 A100: the collapse", gpt3, 1536, 1536, 1, {.zero = 3},
      rate(44, 0.35, kHiddenGathers));
}

void add_korthikanti(std::vector<Run>& runs) {
  const char* source = "Korthikanti 2022";
  const Gpt2Config small = gpt(6144, 48, 64), large = gpt(20480, 105, 128);
  const ParallelLayout plain{.tp = 8, .sequence_parallel = false}, split{.tp = 8};
  runs.push_back({"A8",
                  "22B, TP8, full recomputation: a step",
                  source,
                  small,
                  {"a100-80", 8},
                  {2048, 4, 4},
                  megatron(plain, RematPolicy::full),
                  {Shown::seconds, 1.42}});
  runs.push_back({"A8",
                  "SP + selective: a step",
                  source,
                  small,
                  {"a100-80", 8},
                  {2048, 4, 4},
                  megatron(split, RematPolicy::selective),
                  {Shown::seconds, 1.10}});
  ParallelLayout pipeline{.tp = 8, .pp = 35, .interleave = 3};
  runs.push_back({"A9",
                  "530B, TP8 PP35, SP + selective: a step",
                  source,
                  large,
                  {"a100-80", 280},
                  {2048, 280, 1},
                  megatron(pipeline, RematPolicy::selective),
                  {Shown::seconds, 37.83}});
  pipeline.sequence_parallel = false;
  runs.push_back({"A9",
                  "full recomputation: a step",
                  source,
                  large,
                  {"a100-80", 280},
                  {2048, 280, 1},
                  megatron(pipeline, RematPolicy::full),
                  {Shown::seconds, 49.05}});
}

// ---- Eager PyTorch with FlashAttention.
System eager(ParallelLayout layout, RematPolicy recompute) {
  return {.layout = layout, .recompute = recompute, .fuse = false};
}

void add_mosaic(std::vector<Run>& runs) {
  const auto mpt = [](int64_t width, int64_t layers, int64_t context) {
    Gpt2Config config = gpt(width, layers, width / (width < 1024 ? 64 : 128), 50368, context);
    config.bias = false;
    return config;
  };
  const auto add = [&](const char* id, const char* what, const Gpt2Config& model,
                       const Machine& machine, const Batch& batch, RematPolicy recompute, int zero,
                       const Claim& claim) {
    runs.push_back(
        {id, what, "llm-foundry", model, machine, batch, eager({.zero = zero}, recompute), claim});
  };
  const auto slower = [](double tokens, double band) {
    return Claim{Shown::tokens, tokens, band, kEagerSystem};
  };
  add("A19", "MPT-7B, FSDP, 8 H100", mpt(4096, 32, 2048), {"h100", 8}, {2048, 48, 6},
      RematPolicy::none, 3, slower(10643, 0.35));
  add("A19", "MPT-70B, FSDP, recomputed, 512 H100", mpt(8192, 80, 2048), {"h100", 512},
      {2048, 4096, 8}, RematPolicy::full, 3, slower(1007, 0.45));
  add("A19", "MPT-13B, FSDP, recomputed, 8 A100-40", mpt(5120, 40, 2048), {"a100-40", 8},
      {2048, 32, 4}, RematPolicy::full, 3, slower(1668, 0.35));
  add("A20", "MPT-7B at 65,536 tokens, recomputed, 8 H100", mpt(4096, 32, 65536), {"h100", 8},
      {65536, 8, 1}, RematPolicy::full, 3, {Shown::tokens, 1956, 1.25, kOldAttention});
  add("A20", "MPT-125M, 8 A100-80", mpt(768, 12, 2048), {"a100-80", 8}, {2048, 320, 40},
      RematPolicy::none, 1, slower(142830, 0.25));
}

// ---- Runs whose layout is public in parts.
void add_whole_runs(std::vector<Run>& runs) {
  const auto add = [&](const char* id, const char* what, const char* source,
                       const ModelConfig& model, const Machine& machine, const Batch& batch,
                       const System& system, double tokens, double hours, double band) {
    runs.push_back({id,
                    what,
                    source,
                    model,
                    machine,
                    batch,
                    system,
                    {Shown::hours, hours, band, kWholeHours, tokens}});
  };
  add("A15", "Llama-2 7B, 2T tokens: hours of steps", "model card", llama_preset("llama2-7b"),
      {"a100-80", 512}, {4096, 1024, 2}, eager({.zero = 3}, RematPolicy::selective), 2e12, 184320,
      0.35);
  add("A15", "Llama-2 70B: hours of steps", "model card", llama_preset("llama2-70b"),
      {"a100-80", 2048}, {4096, 1024, 1}, eager({.tp = 8, .zero = 1}, RematPolicy::selective), 2e12,
      1720320, 0.15);
  Gpt2Config pythia = gpt(5120, 36, 40, 50688, 2048);
  add("A18", "Pythia 12B, TP4, 256 A100-40: hours of steps", "Pythia", pythia, {"a100-40", 256},
      {2048, 1024, 16}, eager({.tp = 4, .zero = 1}, RematPolicy::full), 299.9e9, 72300, 0.45);
  pythia = gpt(2048, 16, 8, 50304, 2048);
  add("A18", "Pythia 1B, 64 A100-40: hours of steps", "Pythia", pythia, {"a100-40", 64},
      {2048, 1024, 16}, eager({.zero = 1}, RematPolicy::full), 299.9e9, 4830, 0.35);
}

// ---- Systems of today: fused elementwise kernels, attention without scores in memory.
void add_megatron_core(std::vector<Run>& runs) {
  const auto add = [&](const char* what, const Gpt2Config& model, int64_t count, int64_t batch,
                       int64_t micro, const ParallelLayout& layout, double tflops) {
    runs.push_back({"A21",
                    what,
                    "Megatron-LM",
                    model,
                    {"h100", count},
                    {4096, batch, micro},
                    {.layout = layout},
                    {Shown::tflops, tflops}});
  };
  add("7.1B, TP2, 96 H100: predicted rate", gpt(4096, 30, 32, 131072), 96, 192, 1,
      {.tp = 2, .zero = 1}, 465.9);
  add("70B, TP8 PP2, 768 H100", gpt(8192, 84, 64, 131072), 768, 384, 1,
      {.tp = 8, .pp = 2, .zero = 1}, 419.7);
  add("314B, TP8 PP8, 3072 H100", gpt(16384, 96, 128, 131072), 3072, 1536, 1,
      {.tp = 8, .pp = 8, .zero = 1}, 474.4);
}

void add_fused_systems(std::vector<Run>& runs) {
  const LlamaConfig l8 = llama_preset("llama3-8b"), l70 = llama_preset("llama3-70b");
  const System cut{.layout = {.tp = 4, .pp = 4, .cp = 2, .zero = 1, .interleave = 5}};
  const System plain{.layout = {.zero = 1}};
  const auto add = [&](const char* id, const char* what, const char* source,
                       const ModelConfig& model, const Machine& machine, const Batch& batch,
                       const System& system, const Claim& claim) {
    runs.push_back({id, what, source, model, machine, batch, system, claim});
  };
  add("A22", "torchtitan, Llama-3.1-8B, FSDP, compiled", "torchtitan", l8, {"h100", 8},
      {8192, 16, 2}, {.layout = {.zero = 3}, .recompute = RematPolicy::selective},
      {Shown::tokens, 6667, 0.75, kTitan});
  add("A22", "eager", "torchtitan", l8, {"h100", 8}, {8192, 16, 2},
      eager({.zero = 3}, RematPolicy::selective), {Shown::tokens, 5762, 0.9, kTitan});
  add("A23", "Llama-3.1-8B, CP2: a step", "DGX Cloud", l8, {"h100", 8}, {8192, 128, 1},
      {.layout = {.cp = 2, .zero = 1}}, {Shown::seconds, 12.78});
  add("A23", "Llama-3.1-70B, TP4 PP4 CP2: a step", "DGX Cloud", l70, {"h100", 64}, {8192, 128, 1},
      cut, {Shown::seconds, 14.61});
  add("A24", "the same on 2048 GPUs", "DGX Cloud", l70, {"h100", 2048}, {8192, 4096, 1}, cut,
      {Shown::seconds, 14.84});
  add("A25", "GPT-2 124M, 8 A100: a step", "llm.c", gpt2_preset("gpt2-124m"), {"a100-80", 8},
      {1024, 512, 64}, plain, {Shown::seconds, 0.300});
  add("A26", "GPT-2 1558M, 8 H100: a step", "llm.c", gpt2_preset("gpt2-1558m"), {"h100", 8},
      {1024, 1024, 16}, plain, {Shown::seconds, 2.80});
  add("A28", "Qwen2.5-0.5B, one RTX 4090, fp8, recomputed: a step", "llmq",
      llama_preset("qwen2.5-0.5b"), {"rtx4090", 1}, {1024, 64, 8},
      {.recompute = RematPolicy::full, .precision = Precision::fp8_mixed}, {Shown::seconds, 1.709});
  add("A29", "Qwen2.5-1.5B, one H100: a step", "llmq", llama_preset("qwen2.5-1.5b"), {"h100", 1},
      {1024, 512, 32}, {}, {Shown::seconds, 8.906});
}

// A10: one layer of the 22B model on eight devices, forward and backward apart.
std::vector<PublishedCase> layer_times() {
  std::vector<PublishedCase> cases;
  const auto times = [](RematPolicy policy) {
    const Run run{"A10",
                  "one layer",
                  "",
                  gpt(6144, 48, 64),
                  {"a100-80", 8},
                  {2048, 4, 4},
                  megatron({.tp = 8, .sequence_parallel = false}, policy),
                  {}};
    const Rates rates = gpu_rates(find_gpu("a100-80"), Precision::bf16_mixed);
    const StepCost one = model_cost(tensor_shard(run.model, 8),
                                    {.batch = 4, .seq = 2048, .recompute = policy}, rates)
                             .layers[0]
                             .one;
    const bool again = policy != RematPolicy::none;
    // Two all-reduces forward, two backward, two more where the whole layer runs again.
    const double reduces = policy == RematPolicy::full ? 6 : 4;
    const double reduce = answer_of(run).traffic.tensor_seconds / 48 / reduces;
    return std::pair(
        1e3 * (one.forward_seconds + 2 * reduce + layer_score_seconds(run, kScoreForward)),
        1e3 * (one.backward_seconds + (reduces - 2) * reduce +
               layer_score_seconds(run, kScoreBackward + (again ? kScoreForward : 0))));
  };
  const auto add = [&](const char* what, const char* unit, double published, double ours) {
    cases.push_back({.id = "A10",
                     .what = what,
                     .unit = unit,
                     .published = published,
                     .predicted = ours,
                     .kind = CaseClass::predicted,
                     .band = kBand,
                     .source = "Korthikanti 2022"});
  };
  const auto [forward, backward] = times(RematPolicy::none);
  const double full = times(RematPolicy::full).second,
               selective = times(RematPolicy::selective).second;
  add("one layer of the 22B: forward", "ms", 7.7, forward);
  add("backward", "ms", 11.9, backward);
  add("backward, selective recomputation", "ms", 13.2, selective);
  add("backward, full recomputation", "ms", 19.5, full);
  add("forward and backward: selective over none", "ratio", 20.9 / 19.6,
      (forward + selective) / (forward + backward));
  add("full over none", "ratio", 27.2 / 19.6, (forward + full) / (forward + backward));
  return cases;
}

}  // namespace

std::vector<PublishedCase> published_speeds() {
  std::vector<Run> runs;
  add_narayanan(runs);
  add_korthikanti(runs);
  add_mosaic(runs);
  add_whole_runs(runs);
  add_megatron_core(runs);
  add_fused_systems(runs);
  std::vector<PublishedCase> cases = layer_times();
  for (const Run& run : runs)
    cases.push_back({.id = run.id,
                     .what = run.what,
                     .unit = std::string(unit_of(run.claim.shown)),
                     .published = run.claim.value,
                     .predicted = predicted(run),
                     .kind = CaseClass::predicted,
                     .band = run.claim.band,
                     .source = run.source,
                     .reason = run.claim.reason});
  return cases;
}

}  // namespace brrr
