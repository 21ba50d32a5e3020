// Published numbers that follow by arithmetic from sizes, counts and speeds of the same source.
#include "brrr/account/hardware.h"
#include "brrr/account/mfu.h"
#include "brrr/napkin/conventions.h"
#include "brrr/napkin/gpu_rates.h"
#include "brrr/napkin/inference.h"
#include "brrr/napkin/published.h"
#include "brrr/napkin/published_run.h"
#include "brrr/napkin/run_question.h"

namespace brrr {
namespace {

constexpr double kDay = 86400, kHour = 3600, kTera = 1e12, kMiB = 1048576, kGiB = 1073741824;
constexpr double kExact = 0.01, kFormula = 0.03;

double peak_of(std::string_view gpu) { return find_gpu(gpu).peak(Arithmetic::bf16).dense.value(); }

Gpt2Config gpt(int64_t width, int64_t layers, int64_t heads, int64_t vocab = 51200,
               int64_t context = 2048) {
  return {.vocab = vocab, .context = context, .layers = layers, .heads = heads, .width = width};
}

// Of one token in sequences of `seq`, from the graph.
FlopFacts facts_of(const ModelConfig& config, int64_t seq) {
  const Rates any = gpu_rates(find_gpu("h100"), Precision::bf16_mixed);
  return flop_facts(config, model_cost(config, {.seq = seq}, any).total(), seq);
}

class Cases {
 public:
  void add(const char* id, const char* what, const char* unit, double published, double predicted,
           const char* source, double band = kExact, const char* reason = "") {
    cases_.push_back({.id = id,
                      .what = what,
                      .unit = unit,
                      .published = published,
                      .predicted = predicted,
                      .kind = band == kFormula ? CaseClass::formula : CaseClass::exact,
                      .band = band,
                      .source = source,
                      .reason = reason});
  }
  // Published is at least ours.
  void add_least(const char* id, const char* what, const char* unit, double published,
                 double predicted, const char* source, const char* reason) {
    add(id, what, unit, published, predicted, source, 0, reason);
    cases_.back().kind = CaseClass::bound;
    cases_.back().side = Side::least;
  }
  std::vector<PublishedCase> take() { return std::move(cases_); }

 private:
  std::vector<PublishedCase> cases_;
};

// A1 to A7: Narayanan et al. 2021. What the devices run with full recomputation: 96 B s L h^2 (...).
void add_narayanan(Cases& cases) {
  const char* source = "Narayanan 2021";
  const auto hardware = [](const FlopFacts& f) {
    return flops_per_token(Convention::megatron, f) +
           recomputed_per_token(Convention::megatron, f, RematPolicy::full);
  };
  const FlopFacts small = facts_of(gpt(2304, 24, 24), 2048);
  const double step = 512 * 2048 * hardware(small) / (32 * 137 * kTera);
  cases.add("A1", "1.7B, 32 A100 at 137 TFLOP/s: a step", "s", 3.53, step, source);
  cases.add(
      "A1", "its MFU without the second forward", "%", 33.5,
      100 * 512 * 2048 * flops_per_token(Convention::megatron, small) / step / 32 / peak_of("a100"),
      source, 0.02, "published from a rounded rate");
  cases.add("A2", "7.5B: parameters", "1e9", 7.5, 1e-9 * gpt(4096, 36, 32).parameter_count(),
            source);
  cases.add("A3", "39.1B: parameters", "1e9", 39.1, 1e-9 * gpt(8192, 48, 64).parameter_count(),
            source);
  cases.add("A4", "145.6B: parameters", "1e9", 145.6, 1e-9 * gpt(12288, 80, 96).parameter_count(),
            source);
  const FlopFacts trillion = facts_of(gpt(25600, 128, 160), 2048);
  cases.add("A5", "1008B: parameters", "1e9", 1008, 1e-9 * gpt(25600, 128, 160).parameter_count(),
            source);
  cases.add("A5", "3072 A100 at 163 TFLOP/s: a step", "s", 102.6,
            3072.0 * 2048 * hardware(trillion) / (3072 * 163 * kTera), source);
  cases.add("A6", "175B, 300B tokens, 1024 A100 at 140 TFLOP/s: 8 T N / (n X)", "days", 34,
            8 * 300e9 * 175e9 / (1024 * 140 * kTera) / kDay, source);
  const FlopFacts gpt3 = facts_of(gpt2_preset("gpt3-175b"), 2048);
  const auto days = [&](double n, double rate) {
    return 300e9 * hardware(gpt3) / (n * rate * kTera) / kDay;
  };
  cases.add("A7", "174.6B, PTD-P, 384 GPUs at 153 TFLOP/s", "days", 84, days(384, 153), source);
  cases.add("A7", "ZeRO-3, 384 GPUs at 144", "days", 90, days(384, 144), source);
  cases.add("A7", "ZeRO-3, 1536 GPUs at 44", "days", 74, days(1536, 44), source);
}

// A8, A9, A11: Korthikanti et al. 2022. Their HFU counts 24 B s^2 h a layer for selective recomputation.
void add_korthikanti(Cases& cases) {
  const char* source = "Korthikanti 2022";
  struct Run {
    const char* id;
    int64_t width, layers, heads, batch;
    double devices, seconds, mfu, hfu;
  };
  for (const Run& run : {Run{"A8", 6144, 48, 64, 4, 8, 1.10, 41.5, 43.7},
                         Run{"A9", 20480, 105, 128, 280, 280, 37.83, 56.0, 57.0}}) {
    const FlopFacts f = facts_of(gpt(run.width, run.layers, run.heads), 2048);
    const double rate =
        static_cast<double>(run.batch * 2048) / run.seconds / run.devices / peak_of("a100");
    const double model = flops_per_token(Convention::megatron, f);
    cases.add(run.id, "SP + selective recomputation: MFU", "%", run.mfu, 100 * model * rate, source,
              kFormula);
    cases.add(run.id, "HFU", "%", run.hfu, 100 * (model + 3 * f.attention_full) * rate, source,
              kFormula);
  }
  const double a = 96, s = 2048, h = 12288;
  const FlopFacts f = facts_of(gpt2_preset("gpt3-175b"), 2048);
  cases.add("A11", "GPT-3: 5 a s / h", "", 80, 5 * a * s / h, source);
  cases.add("A11", "memory that selective recomputation saves", "%", 70, 100 * 80 / (34 + 80.0),
            source, kFormula);
  cases.add("A11", "FLOPs that it adds, by their count", "%", 2.7,
            100 * 3 * f.attention_full / flops_per_token(Convention::megatron, f), source,
            kFormula);
}

void add_palm_and_mtnlg(Cases& cases) {
  const double n = 540.35e9, attention = 12.0 * 118 * 48 * 256 * 2048,
               rate = 238.3e3 / (6144 * peak_of("tpu-v4"));
  cases.add("A12", "PaLM 540B: model FLOPs of a token", "TFLOP", 3.28, (6 * n + attention) / kTera,
            "PaLM");
  cases.add("A12", "PaLM 540B, 6144 TPU v4, 238.3K tokens/s: MFU", "%", 45.7, 100 * 6 * n * rate,
            "PaLM");
  cases.add("A12", "with attention", "%", 46.2, 100 * (6 * n + attention) * rate, "PaLM");
  // Three quarters of the products run again, and all of the attention.
  const double again = 0.75 * 2 * n + attention / 3;
  cases.add("A12", "FLOPs of a token with what runs again", "TFLOP", 4.10,
            (6 * n + attention + again) / kTera, "PaLM");
  cases.add("A12", "HFU", "%", 57.8, 100 * (6 * n + attention + again) * rate, "PaLM");
  const FlopFacts f = facts_of(gpt(20480, 105, 128), 2048);
  const double tokens = 1920 * 2048, per = tokens / 60.1 / 2240;
  const double model = flops_per_token(Convention::megatron, f);
  cases.add(
      "A13", "MT-NLG 530B, 2240 A100, 60.1 s: rate of a device", "TFLOP/s", 126,
      (model + recomputed_per_token(Convention::megatron, f, RematPolicy::full)) * per / kTera,
      "Megatron-Turing", 0.015, "published without decimals");
  cases.add(
      "A13", "MFU without attention", "%", 29.7,
      100 * 6 * static_cast<double>(gpt(20480, 105, 128).parameter_count()) * per / peak_of("a100"),
      "PaLM, table of others", 0.015, "the count of parameters is rounded there");
  cases.add("A13", "MFU", "%", 30.2, 100 * model * per / peak_of("a100"), "PaLM, table of others");
}

constexpr double kBloomHours = 1082990, kBloomTokens = 366e9, kBloomBatch = 2048.0 * 2048;

double bloom_step_seconds() {
  const FlopFacts bloom = facts_of(gpt(14336, 70, 112, 250680), 2048);
  const double hardware = flops_per_token(Convention::megatron, bloom) +
                          recomputed_per_token(Convention::megatron, bloom, RematPolicy::full);
  return kBloomBatch * hardware / (384 * 149.77 * kTera);
}
double bloom_step_hours() {
  return kBloomTokens / kBloomBatch * bloom_step_seconds() * 384 / kHour;
}

void add_llamas(Cases& cases) {
  const double a100 = peak_of("a100"), h100 = peak_of("h100");
  cases.add("A14", "LLaMA-65B, 1.4T tokens at 380 tokens/s a GPU", "GPU-h", 1022362,
            1.4e12 / 380 / kHour, "LLaMA");
  cases.add("A14", "its 6 N D MFU", "%", 47.7, 100 * 6 * 65.286e9 * 380 / a100, "LLaMA");
  const auto share = [](double n, double tokens, double hours, double peak) {
    return 100 * training_flops(n, tokens).value() / (hours * kHour * peak);
  };
  cases.add("A15", "Llama-2 7B, 184,320 GPU-h: 6 N D MFU", "%", 39.1,
            share(llama_preset("llama2-7b").parameter_count(), 2e12, 184320, a100), "model card");
  cases.add("A15", "Llama-2 70B, 1,720,320 GPU-h", "%", 42.8,
            share(llama_preset("llama2-70b").parameter_count(), 2e12, 1720320, a100), "model card");
  cases.add("A16", "Llama-3.1 405B, 30.84M GPU-h: the whole run", "%", 34.6,
            share(llama_preset("llama3-405b").parameter_count(), 15.6e12, 30.84e6, h100),
            "model card");
  const char* rounded = "published in whole per cents";
  cases.add("A16", "430 TFLOP/s of 8K GPUs", "%", 43, 100 * 430 * kTera / h100, "Llama 3", 0.015,
            rounded);
  cases.add("A16", "400 TFLOP/s of 16K GPUs", "%", 41, 100 * 400 * kTera / h100, "Llama 3", 0.015,
            rounded);
  cases.add("A16", "380 TFLOP/s at 131K tokens", "%", 38, 100 * 380 * kTera / h100, "Llama 3",
            0.015, rounded);
  cases.add("A17", "BLOOM 176B, 384 A100 at 149.77 TFLOP/s: a step", "s", 104.70,
            bloom_step_seconds(), "BigScience");
  cases.add_least("A17", "366B tokens: hours of steps", "GPU-h", kBloomHours, bloom_step_hours(),
                  "model card",
                  "the other tenth of the hours went by between steps: restarts, checkpoints, "
                  "evaluation. This goodput, of a run whose step is known, is what A15 takes");
  cases.add("A18", "Pythia 12B, 72,300 GPU-h: 6 N D MFU", "%", 26.2,
            share(11.846e9, 299.9e9, 72300, a100), "Pythia");
  cases.add("A18", "Pythia 1B, 4,830 GPU-h", "%", 33.6, share(1.0118e9, 299.9e9, 4830, a100),
            "Pythia");
  cases.add("A34", "DeepSeek-V3: 6 N D, N active", "1e24", 3.29, 6 * 37e9 * 14.8e12 / 1e24,
            "DeepSeek-V3");
  cases.add("A34", "2.664M GPU-h of the bf16 peak", "%", 34.6, share(37e9, 14.8e12, 2.664e6, h100),
            "DeepSeek-V3");
  cases.add("A34", "of the fp8 peak", "%", 17.3,
            share(37e9, 14.8e12, 2.664e6, find_gpu("h100").peak(Arithmetic::fp8).dense.value()),
            "DeepSeek-V3");
  cases.add("A34", "parameters of a token, from the shape", "1e9", 37,
            1e-9 * llama_preset("deepseek-v3").active_parameter_count(), "DeepSeek-V3", kFormula,
            "published as 37; the input table is counted here");
  cases.add("A35", "Llama 4 Scout, 5.0M GPU-h", "%", 22.9, share(17e9, 40e12, 5e6, h100),
            "model card");
}

// A19, A20: all parameters, full attention.
void add_mosaic(Cases& cases) {
  struct Run {
    const char *id, *what;
    Gpt2Config model;
    int64_t seq;
    const char* gpu;
    double rate, mfu;
  };
  const auto mpt = [](int64_t width, int64_t layers, int64_t context) {
    Gpt2Config config = gpt(width, layers, width / 64, 50368, context);
    config.bias = false;
    return config;
  };
  const Run runs[] = {
      {"A19", "MPT-7B, 8 H100, 10,643 tokens/s a GPU: MFU", mpt(4096, 32, 2048), 2048, "h100",
       10643, 46.44},
      {"A19", "MPT-70B, 512 H100, 1,007 tokens/s", mpt(8192, 80, 2048), 2048, "h100", 1007, 41.25},
      {"A19", "MPT-13B, 8 A100-40, 1,668 tokens/s", mpt(5120, 40, 2048), 2048, "a100-40", 1668,
       43.94},
      {"A20", "MPT-7B at 65,536 tokens, 1,956 tokens/s", mpt(4096, 32, 65536), 65536, "h100", 1956,
       28.59},
      {"A20", "MPT-125M, 8 A100-80, 142,830 tokens/s", mpt(768, 12, 2048), 2048, "a100-80", 142830,
       44.79}};
  for (const Run& run : runs) {
    const FlopFacts f = facts_of(run.model, run.seq);
    cases.add(run.id, run.what, "%", run.mfu,
              100 * flops_per_token(Convention::palm, f) * run.rate / peak_of(run.gpu),
              "llm-foundry");
  }
}

void add_frameworks(Cases& cases) {
  const double h100 = peak_of("h100"), a100 = peak_of("a100");
  cases.add("A21", "Megatron-LM, 465.9 TFLOP/s of an H100", "%", 47, 100 * 465.9 * kTera / h100,
            "Megatron-LM");
  cases.add("A21", "419.7", "%", 42, 100 * 419.7 * kTera / h100, "Megatron-LM", 0.015,
            "whole per cents");
  cases.add("A21", "474.4", "%", 48, 100 * 474.4 * kTera / h100, "Megatron-LM", 0.015,
            "whole per cents");
  const FlopFacts l8 = facts_of(llama_preset("llama3-8b"), 8192),
                  l70 = facts_of(llama_preset("llama3-70b"), 8192);
  const double titan = flops_per_token(Convention::torchtitan, l8);
  cases.add("A22", "torchtitan, Llama-3.1-8B at 5,762 tokens/s", "%", 33.7,
            100 * titan * 5762 / h100, "torchtitan");
  cases.add("A22", "compiled, 6,667 tokens/s", "%", 39.0, 100 * titan * 6667 / h100, "torchtitan");
  const double f8 = 8192 * flops_per_token(Convention::megatron, l8),
               f70 = 8192 * flops_per_token(Convention::megatron, l70);
  cases.add("A23", "Llama-3.1-8B: FLOPs of a sequence of 8192", "1e14", 4.74, f8 / 1e14,
            "DGX Cloud");
  cases.add("A23", "8 H100, 128 sequences in 12.78 s", "%", 59.99,
            100 * 128 * f8 / 12.78 / 8 / h100, "DGX Cloud");
  cases.add("A23", "Llama-3.1-70B: FLOPs of a sequence", "1e15", 3.94, f70 / 1e15, "DGX Cloud");
  cases.add("A23", "64 H100, 128 sequences in 14.61 s", "%", 54.52,
            100 * 128 * f70 / 14.61 / 64 / h100, "DGX Cloud");
  const FlopFacts g124 = facts_of(gpt2_preset("gpt2-124m"), 1024);
  cases.add("A25", "llm.c, GPT-2 124M: 18,865 steps of 300 ms", "min", 94.3, 18865 * 0.3 / 60,
            "llm.c");
  cases.add("A25", "its price at $14 an hour", "$", 20, 18865 * 0.3 / kHour * 14, "llm.c", 0.15,
            "published as about $20");
  cases.add("A25", "its MFU, causal", "%", 56.2,
            100 * flops_per_token(Convention::llmc, g124) * 524288 / 0.3 / 8 / a100, "llm.c");
  cases.add("A26", "llm.c, GPT-2 1558M: 32,000 steps of 2.7 s", "h", 24, 32000 * 2.7 / kHour,
            "llm.c");
  cases.add("A26", "at $28 an hour", "$", 672, 32000 * 2.7 / kHour * 28, "llm.c");
  Gpt2Config nano = gpt2_preset("gpt2-124m");
  nano.bias = false;
  cases.add(
      "A27", "nanoGPT 124M: 100 x 1024 tokens in 755 ms on an A100", "%", 37.14,
      100 * flops_per_token(Convention::nanogpt, facts_of(nano, 1024)) * 1024 * 100 / 0.755 / a100,
      "nanoGPT");
  cases.add("A27", "its checkpoint over 12 bytes a parameter", "%", 103.4,
            100 * 1542470366.0 / (12.0 * static_cast<double>(nano.parameter_count())), "nanoGPT");
  const LlamaConfig qwen = llama_preset("qwen2.5-0.5b");
  cases.add("A28", "llmq, Qwen2.5-0.5B: a moment in bf16", "MiB", 942,
            2.0 * static_cast<double>(qwen.parameter_count()) / kMiB, "llmq", kFormula);
  // The table of tokens stays in bf16 and is its own master; layers have fp8 weights and bf16 masters.
  const double table = static_cast<double>(qwen.vocab * qwen.width),
               layers = static_cast<double>(qwen.parameter_count()) - table;
  cases.add("A28", "masters of the layers in bf16", "MiB", 682, 2 * layers / kMiB, "llmq",
            kFormula);
  cases.add("A28", "weights: layers in fp8, the table in bf16", "MiB", 601,
            (layers + 2 * table) / kMiB, "llmq", kFormula);
  const FlopFacts q15 = facts_of(llama_preset("qwen2.5-1.5b"), 1024);
  cases.add("A29", "Qwen2.5-1.5B at 58.9k tokens/s: speed-of-light share", "%", 56.7,
            100 * flops_per_token(Convention::exact, q15) * 58.9e3 / h100, "llmq");
  const double v6e = peak_of("tpu-v6e");
  cases.add("A32", "MaxText, Llama-3.1-70B, 960 tokens/s a chip", "%", 50.33,
            100 * flops_per_token(Convention::megatron, l70) * 960 / v6e, "MaxText");
  cases.add("A32", "22B on v4, 156 TFLOP/s", "%", 56.7, 100 * 156 * kTera / peak_of("tpu-v4"),
            "MaxText");
  const FlopFacts tiny = facts_of(llama_preset("tinyllama-1.1b"), 2048);
  cases.add("A33", "TinyLlama, 24k tokens/s on an A100", "%", 56,
            100 * flops_per_token(Convention::torchtitan, tiny) * 24e3 / a100, "TinyLlama");
  cases.add("A36", "FSDP of Llama-3-8B over 8 and 128 ranks: the difference", "GiB", 14.02,
            16 * static_cast<double>(llama_preset("llama3-8b").parameter_count()) *
                (1.0 / 8 - 1.0 / 128) / kGiB,
            "PyTorch FSDP", kFormula);
}

}  // namespace

double bloom_goodput() { return bloom_step_hours() / kBloomHours; }

std::vector<PublishedCase> exact_cases() {
  Cases cases;
  add_narayanan(cases);
  add_korthikanti(cases);
  add_palm_and_mtnlg(cases);
  add_llamas(cases);
  add_mosaic(cases);
  add_frameworks(cases);
  return cases.take();
}

}  // namespace brrr
