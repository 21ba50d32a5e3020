// Published speeds, predicted from the hardware table alone: the model's own graph, cut as the run was, priced
// kernel by kernel. Bounds on decoding stand beside what systems reached.
#include "brrr/napkin/gpu_rates.h"
#include "brrr/napkin/inference.h"
#include "brrr/napkin/published.h"
#include "brrr/napkin/run_question.h"

namespace brrr {
namespace {

constexpr double kBand = 0.15;

// A run as it was published.
struct Run {
  const char *id, *what, *source;
  ModelConfig model;
  const char* gpu;
  int64_t count, seq, global_batch, micro_batch;
  ParallelLayout layout = {};
  RematPolicy recompute = RematPolicy::none;
  double seconds = 0;  // of a step
  double band = kBand;
  const char* reason = "";
};

RunAnswer answer_of(const Run& run) {
  RunQuestion q;
  q.model_name = run.what;
  q.model = run.model;
  q.tokens = 1e9;
  q.gpu = run.gpu;
  q.count = run.count;
  q.seq = run.seq;
  q.global_batch = run.global_batch;
  q.micro_batch = run.micro_batch;
  q.layout = run.layout;
  q.recompute = run.recompute;
  return answer(q);
}

Gpt2Config gpt(int64_t width, int64_t layers, int64_t heads, int64_t vocab) {
  return {.vocab = vocab, .context = 4096, .layers = layers, .heads = heads, .width = width};
}

// Seconds of a step from tokens a second and device.
double seconds_at(double tokens_per_second, int64_t count, int64_t seq, int64_t batch) {
  return static_cast<double>(seq * batch) / (tokens_per_second * static_cast<double>(count));
}

constexpr const char* kEager =
    "the system ran elementwise ops one by one and attention unfused or in another library; the "
    "plan is that of a "
    "fused program";

std::vector<Run> steps() {
  const LlamaConfig l8 = llama_preset("llama3-8b"), l70 = llama_preset("llama3-70b");
  return {{"A8",
           "22B, TP8, full recomputation: a step",
           "Korthikanti 2022",
           gpt(6144, 48, 64, 51200),
           "a100-80",
           8,
           2048,
           4,
           4,
           {.tp = 8, .sequence_parallel = false},
           RematPolicy::full,
           1.42,
           0.30,
           kEager},
          {"A9",
           "530B, TP8 PP35, SP + selective: a step",
           "Korthikanti 2022",
           gpt(20480, 105, 128, 51200),
           "a100-80",
           280,
           2048,
           280,
           1,
           {.tp = 8, .pp = 35, .interleave = 3},
           RematPolicy::selective,
           37.83},
          {"A19",
           "MPT-7B, FSDP: a step",
           "llm-foundry",
           gpt(4096, 32, 32, 50368),
           "h100",
           8,
           2048,
           48,
           6,
           {.zero = 3},
           RematPolicy::none,
           seconds_at(10643, 8, 2048, 48),
           0.35,
           kEager},
          {"A20",
           "MPT-125M: a step",
           "llm-foundry",
           gpt(768, 12, 12, 50368),
           "a100-80",
           8,
           2048,
           320,
           40,
           {.zero = 1},
           RematPolicy::none,
           seconds_at(142830, 8, 2048, 320),
           0.25,
           kEager},
          {"A23",
           "Llama-3.1-8B, CP2: a step",
           "DGX Cloud",
           l8,
           "h100",
           8,
           8192,
           128,
           1,
           {.cp = 2, .zero = 1},
           RematPolicy::none,
           12.78},
          {"A23",
           "Llama-3.1-70B, TP4 PP4 CP2: a step",
           "DGX Cloud",
           l70,
           "h100",
           64,
           8192,
           128,
           1,
           {.tp = 4, .pp = 4, .cp = 2, .zero = 1, .interleave = 5},
           RematPolicy::none,
           14.61},
          {"A24",
           "the same on 2048 GPUs",
           "DGX Cloud",
           l70,
           "h100",
           2048,
           8192,
           4096,
           1,
           {.tp = 4, .pp = 4, .cp = 2, .zero = 1, .interleave = 5},
           RematPolicy::none,
           14.84},
          {"A25",
           "GPT-2 124M, 8 A100: a step",
           "llm.c",
           gpt2_preset("gpt2-124m"),
           "a100-80",
           8,
           1024,
           512,
           64,
           {.zero = 1},
           RematPolicy::none,
           0.300},
          {"A26",
           "GPT-2 1558M, 8 H100: a step",
           "llm.c",
           gpt2_preset("gpt2-1558m"),
           "h100",
           8,
           1024,
           1024,
           16,
           {.zero = 1},
           RematPolicy::none,
           2.80},
          {"A29",
           "Qwen2.5-1.5B, one H100: a step",
           "llmq",
           llama_preset("qwen2.5-1.5b"),
           "h100",
           1,
           1024,
           512,
           32,
           {},
           RematPolicy::none,
           8.906}};
}

InferAnswer decode(const char* model, const char* gpu, double weight_bytes, int64_t context,
                   int64_t count = 1) {
  InferQuestion q{.model = model_preset(model), .gpu = gpu};
  q.weight_bytes = weight_bytes;
  q.context = context;
  q.count = count;
  return answer(q);
}

}  // namespace

std::vector<PublishedCase> predicted_cases() {
  std::vector<PublishedCase> cases;
  for (const Run& run : steps())
    cases.push_back({.id = run.id,
                     .what = run.what,
                     .unit = "s",
                     .published = run.seconds,
                     .predicted = answer_of(run).step_seconds,
                     .kind = CaseClass::predicted,
                     .band = run.band,
                     .source = run.source,
                     .reason = run.reason});
  // A10: one layer of the 22B, forward and backward in ms: 7.7 + 11.9 plain, 7.7 + 19.5 computed again.
  const auto layer = [](RematPolicy policy) {
    const Rates rates = gpu_rates(find_gpu("a100-80"), Precision::bf16_mixed);
    return model_cost(tensor_shard(gpt(6144, 48, 64, 51200), 8),
                      {.batch = 4, .seq = 2048, .recompute = policy}, rates)
        .layers[0]
        .one.seconds();
  };
  const double plain = layer(RematPolicy::none);
  const auto predicted = [&](const char* id, const char* what, const char* unit, double published,
                             double ours, const char* source, double band = kBand,
                             const char* reason = "") {
    cases.push_back({.id = id,
                     .what = what,
                     .unit = unit,
                     .published = published,
                     .predicted = ours,
                     .kind = CaseClass::predicted,
                     .band = band,
                     .source = source,
                     .reason = reason});
  };
  predicted("A10", "one layer of the 22B: full recomputation over none", "ratio", 27.2 / 19.6,
            layer(RematPolicy::full) / plain, "Korthikanti 2022");
  predicted("A10", "selective over none", "ratio", 20.9 / 19.6,
            layer(RematPolicy::selective) / plain, "Korthikanti 2022");
  const RunAnswer titan = answer_of({"A22",
                                     "",
                                     "",
                                     llama_preset("llama3-8b"),
                                     "h100-nvl",
                                     8,
                                     8192,
                                     16,
                                     2,
                                     {.zero = 3},
                                     RematPolicy::selective});
  predicted("A22", "torchtitan, Llama-3.1-8B, FSDP, compiled: memory", "GiB", 77.0,
            titan.memory.total() / 1073741824, "torchtitan", kBand,
            "what another system keeps under its own selective policy");
  const auto bound = [&](const char* id, const char* what, const char* unit, double published,
                         double limit, const char* source) {
    cases.push_back({.id = id,
                     .what = what,
                     .unit = unit,
                     .published = published,
                     .predicted = limit,
                     .kind = CaseClass::bound,
                     .band = 0,
                     .source = source});
  };
  bound("A30", "Llama-2-7B bf16, batch 1, A100-80", "tok/s", 104.9,
        decode("llama2-7b", "a100-80", 2, 1).tokens_per_second, "gpt-fast");
  bound("A30", "int8", "tok/s", 155.6, decode("llama2-7b", "a100-80", 1, 1).tokens_per_second,
        "gpt-fast");
  bound("A30", "int4, groups of 32", "tok/s", 196.8,
        decode("llama2-7b", "a100-80", weight_bytes_of("int4"), 1).tokens_per_second, "gpt-fast");
  bound("A30", "bf16 over 8 devices", "tok/s", 328.4,
        decode("llama2-7b", "a100-80", 2, 1, 8).tokens_per_second, "gpt-fast");
  const InferAnswer one = decode("llama2-13b", "a100-40", 2, 512),
                    two = decode("llama2-13b", "a100-40", 2, 512, 2);
  bound("A31", "13B, A100-40, prompt of 512: prefills a second", "1/s", 1 / 63.17e-3,
        1 / one.prefill_seconds, "FasterTransformer");
  bound("A31", "tokens a second", "1/s", 1 / 22.0e-3, 1 / one.decode_seconds, "FasterTransformer");
  bound("A31", "two devices: prefills a second", "1/s", 1 / 45.45e-3, 1 / two.prefill_seconds,
        "FasterTransformer");
  bound("A31", "two devices: tokens a second", "1/s", 1 / 13.5e-3, 1 / two.decode_seconds,
        "FasterTransformer");
  return cases;
}

}  // namespace brrr
