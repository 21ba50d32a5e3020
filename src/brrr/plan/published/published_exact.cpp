// Published numbers that follow by arithmetic from sizes, counts and speeds of the same source.
#include "brrr/hardware/hardware.h"
#include "brrr/hardware/mfu.h"
#include "brrr/plan/cluster/run_question.h"
#include "brrr/plan/conventions.h"
#include "brrr/plan/gpu_rates.h"
#include "brrr/plan/inference.h"
#include "brrr/plan/published/published_toml.h"

namespace brrr::plan {
namespace {

constexpr double kDay = 86400, kHour = 3600, kTera = 1e12, kMiB = 1048576, kGiB = 1073741824;

double peak_of(std::string_view gpu) {
  return hardware::find_gpu(gpu).peak(hardware::Arithmetic::bf16).dense.value();
}

Gpt2Config gpt(int64_t width, int64_t layers, int64_t heads, int64_t vocab = 51200,
               int64_t context = 2048) {
  return {.vocab = vocab, .context = context, .layers = layers, .heads = heads, .width = width};
}

// Of one token in sequences of `seq`, from the graph.
FlopFacts facts_of(const ModelConfig& config, int64_t seq) {
  const hardware::Rates any =
      gpu_rates(hardware::find_gpu("h100"), compiler::Precision::bf16_mixed);
  return flop_facts(config, model_cost(config, {.seq = seq}, any).total(), seq);
}

// Numbers of arithmetic.toml, each with what its arithmetic gives here.
class Cases {
 public:
  void add(std::string_view key, double predicted) {
    cases_.push_back(number_case("arithmetic", key, predicted));
  }
  std::vector<PublishedCase> take() { return std::move(cases_); }

 private:
  std::vector<PublishedCase> cases_;
};

// A1 to A7: Narayanan et al. 2021. What the devices run with full recomputation: 96 B s L h^2 (...).
void add_narayanan(Cases& cases) {
  const auto hardware = [](const FlopFacts& f) {
    return flops_per_token(Convention::megatron, f) +
           recomputed_per_token(Convention::megatron, f, compiler::RematPolicy::full);
  };
  const FlopFacts small = facts_of(gpt(2304, 24, 24), 2048);
  const double step = 512 * 2048 * hardware(small) / (32 * 137 * kTera);
  cases.add("A1.step", step);
  cases.add("A1.mfu", 100 * 512 * 2048 * flops_per_token(Convention::megatron, small) / step / 32 /
                          peak_of("a100"));
  cases.add("A2.parameters", 1e-9 * gpt(4096, 36, 32).parameter_count());
  cases.add("A3.parameters", 1e-9 * gpt(8192, 48, 64).parameter_count());
  cases.add("A4.parameters", 1e-9 * gpt(12288, 80, 96).parameter_count());
  const FlopFacts trillion = facts_of(gpt(25600, 128, 160), 2048);
  cases.add("A5.parameters", 1e-9 * gpt(25600, 128, 160).parameter_count());
  cases.add("A5.step", 3072.0 * 2048 * hardware(trillion) / (3072 * 163 * kTera));
  cases.add("A6.days", 8 * 300e9 * 175e9 / (1024 * 140 * kTera) / kDay);
  const FlopFacts gpt3 = facts_of(gpt2_preset("gpt3-175b"), 2048);
  const auto days = [&](double n, double rate) {
    return 300e9 * hardware(gpt3) / (n * rate * kTera) / kDay;
  };
  cases.add("A7.ptd_p", days(384, 153));
  cases.add("A7.zero3_384", days(384, 144));
  cases.add("A7.zero3_1536", days(1536, 44));
}

// A8, A9, A11: Korthikanti et al. 2022. Their HFU counts 24 B s^2 h a layer for selective recomputation.
void add_korthikanti(Cases& cases) {
  struct Run {
    const char* id;
    int64_t width, layers, heads, batch;
    double devices, seconds;
  };
  for (const Run& run :
       {Run{"A8", 6144, 48, 64, 4, 8, 1.10}, Run{"A9", 20480, 105, 128, 280, 280, 37.83}}) {
    const FlopFacts f = facts_of(gpt(run.width, run.layers, run.heads), 2048);
    const double rate =
        static_cast<double>(run.batch * 2048) / run.seconds / run.devices / peak_of("a100");
    const double model = flops_per_token(Convention::megatron, f);
    cases.add(join_text(run.id, ".mfu"), 100 * model * rate);
    cases.add(join_text(run.id, ".hfu"), 100 * (model + 3 * f.attention_full) * rate);
  }
  const double a = 96, s = 2048, h = 12288;
  const FlopFacts f = facts_of(gpt2_preset("gpt3-175b"), 2048);
  cases.add("A11.ratio", 5 * a * s / h);
  cases.add("A11.memory_saved", 100 * 80 / (34 + 80.0));
  cases.add("A11.flops_added",
            100 * 3 * f.attention_full / flops_per_token(Convention::megatron, f));
}

void add_palm_and_mtnlg(Cases& cases) {
  const double n = 540.35e9, attention = 12.0 * 118 * 48 * 256 * 2048,
               rate = 238.3e3 / (6144 * peak_of("tpu-v4"));
  cases.add("A12.flops", (6 * n + attention) / kTera);
  cases.add("A12.mfu", 100 * 6 * n * rate);
  cases.add("A12.mfu_with_attention", 100 * (6 * n + attention) * rate);
  // Three quarters of the products run again, and all of the attention.
  const double again = 0.75 * 2 * n + attention / 3;
  cases.add("A12.flops_recomputed", (6 * n + attention + again) / kTera);
  cases.add("A12.hfu", 100 * (6 * n + attention + again) * rate);
  const FlopFacts f = facts_of(gpt(20480, 105, 128), 2048);
  const double tokens = 1920 * 2048, per = tokens / 60.1 / 2240;
  const double model = flops_per_token(Convention::megatron, f);
  cases.add("A13.rate",
            (model + recomputed_per_token(Convention::megatron, f, compiler::RematPolicy::full)) *
                per / kTera);
  cases.add("A13.mfu_without_attention",
            100 * 6 * static_cast<double>(gpt(20480, 105, 128).parameter_count()) * per /
                peak_of("a100"));
  cases.add("A13.mfu", 100 * model * per / peak_of("a100"));
}

constexpr double kBloomHours = 1082990, kBloomTokens = 366e9, kBloomBatch = 2048.0 * 2048;

double bloom_step_seconds() {
  const FlopFacts bloom = facts_of(gpt(14336, 70, 112, 250680), 2048);
  const double hardware =
      flops_per_token(Convention::megatron, bloom) +
      recomputed_per_token(Convention::megatron, bloom, compiler::RematPolicy::full);
  return kBloomBatch * hardware / (384 * 149.77 * kTera);
}
double bloom_step_hours() {
  return kBloomTokens / kBloomBatch * bloom_step_seconds() * 384 / kHour;
}

void add_llamas(Cases& cases) {
  const double a100 = peak_of("a100"), h100 = peak_of("h100");
  cases.add("A14.hours", 1.4e12 / 380 / kHour);
  cases.add("A14.mfu", 100 * 6 * 65.286e9 * 380 / a100);
  const auto share = [](double n, double tokens, double hours, double peak) {
    return 100 * hardware::training_flops(n, tokens).value() / (hours * kHour * peak);
  };
  cases.add("A15.mfu_7b", share(llama_preset("llama2-7b").parameter_count(), 2e12, 184320, a100));
  cases.add("A15.mfu_70b",
            share(llama_preset("llama2-70b").parameter_count(), 2e12, 1720320, a100));
  cases.add("A16.whole_run",
            share(llama_preset("llama3-405b").parameter_count(), 15.6e12, 30.84e6, h100));
  cases.add("A16.rate_8k_gpus", 100 * 430 * kTera / h100);
  cases.add("A16.rate_16k_gpus", 100 * 400 * kTera / h100);
  cases.add("A16.rate_131k_tokens", 100 * 380 * kTera / h100);
  cases.add("A17.step", bloom_step_seconds());
  cases.add("A17.hours", bloom_step_hours());
  cases.add("A18.mfu_12b", share(11.846e9, 299.9e9, 72300, a100));
  cases.add("A18.mfu_1b", share(1.0118e9, 299.9e9, 4830, a100));
  cases.add("A34.flops", 6 * 37e9 * 14.8e12 / 1e24);
  cases.add("A34.mfu_bf16", share(37e9, 14.8e12, 2.664e6, h100));
  cases.add("A34.mfu_fp8",
            share(37e9, 14.8e12, 2.664e6,
                  hardware::find_gpu("h100").peak(hardware::Arithmetic::fp8).dense.value()));
  cases.add("A34.active_parameters", 1e-9 * llama_preset("deepseek-v3").active_parameter_count());
  cases.add("A35.mfu", share(17e9, 40e12, 5e6, h100));
}

// A19, A20: all parameters, full attention.
void add_mosaic(Cases& cases) {
  struct Run {
    const char* key;
    Gpt2Config model;
    int64_t seq;
    const char* gpu;
    double rate;  // tokens per second and device
  };
  const auto mpt = [](int64_t width, int64_t layers, int64_t context) {
    Gpt2Config config = gpt(width, layers, width / 64, 50368, context);
    config.bias = false;
    return config;
  };
  const Run runs[] = {{"A19.mfu_7b", mpt(4096, 32, 2048), 2048, "h100", 10643},
                      {"A19.mfu_70b", mpt(8192, 80, 2048), 2048, "h100", 1007},
                      {"A19.mfu_13b", mpt(5120, 40, 2048), 2048, "a100-40", 1668},
                      {"A20.mfu_7b", mpt(4096, 32, 65536), 65536, "h100", 1956},
                      {"A20.mfu_125m", mpt(768, 12, 2048), 2048, "a100-80", 142830}};
  for (const Run& run : runs) {
    const FlopFacts f = facts_of(run.model, run.seq);
    cases.add(run.key, 100 * flops_per_token(Convention::palm, f) * run.rate / peak_of(run.gpu));
  }
}

void add_frameworks(Cases& cases) {
  const double h100 = peak_of("h100"), a100 = peak_of("a100");
  cases.add("A21.mfu_7b", 100 * 465.9 * kTera / h100);
  cases.add("A21.mfu_70b", 100 * 419.7 * kTera / h100);
  cases.add("A21.mfu_314b", 100 * 474.4 * kTera / h100);
  const FlopFacts l8 = facts_of(llama_preset("llama3-8b"), 8192),
                  l70 = facts_of(llama_preset("llama3-70b"), 8192);
  const double titan = flops_per_token(Convention::torchtitan, l8);
  cases.add("A22.mfu_eager", 100 * titan * 5762 / h100);
  cases.add("A22.mfu_compiled", 100 * titan * 6667 / h100);
  const double f8 = 8192 * flops_per_token(Convention::megatron, l8),
               f70 = 8192 * flops_per_token(Convention::megatron, l70);
  cases.add("A23.flops_8b", f8 / 1e14);
  cases.add("A23.mfu_8b", 100 * 128 * f8 / 12.78 / 8 / h100);
  cases.add("A23.flops_70b", f70 / 1e15);
  cases.add("A23.mfu_70b", 100 * 128 * f70 / 14.61 / 64 / h100);
  const FlopFacts g124 = facts_of(gpt2_preset("gpt2-124m"), 1024);
  cases.add("A25.minutes", 18865 * 0.3 / 60);
  cases.add("A25.price", 18865 * 0.3 / kHour * 14);
  cases.add("A25.mfu", 100 * flops_per_token(Convention::llmc, g124) * 524288 / 0.3 / 8 / a100);
  cases.add("A26.hours", 32000 * 2.7 / kHour);
  cases.add("A26.price", 32000 * 2.7 / kHour * 28);
  Gpt2Config nano = gpt2_preset("gpt2-124m");
  nano.bias = false;
  cases.add("A27.mfu", 100 * flops_per_token(Convention::nanogpt, facts_of(nano, 1024)) * 1024 *
                           100 / 0.755 / a100);
  cases.add("A27.checkpoint",
            100 * 1542470366.0 / (12.0 * static_cast<double>(nano.parameter_count())));
  const LlamaConfig qwen = llama_preset("qwen2.5-0.5b");
  cases.add("A28.moment", 2.0 * static_cast<double>(qwen.parameter_count()) / kMiB);
  // The table of tokens stays in bf16 and is its own master; layers have fp8 weights and bf16 masters.
  const double table = static_cast<double>(qwen.vocab * qwen.width),
               layers = static_cast<double>(qwen.parameter_count()) - table;
  cases.add("A28.masters", 2 * layers / kMiB);
  cases.add("A28.weights", (layers + 2 * table) / kMiB);
  const FlopFacts q15 = facts_of(llama_preset("qwen2.5-1.5b"), 1024);
  cases.add("A29.share", 100 * flops_per_token(Convention::exact, q15) * 58.9e3 / h100);
  const double v6e = peak_of("tpu-v6e");
  cases.add("A32.mfu_70b", 100 * flops_per_token(Convention::megatron, l70) * 960 / v6e);
  cases.add("A32.mfu_22b", 100 * 156 * kTera / peak_of("tpu-v4"));
  const FlopFacts tiny = facts_of(llama_preset("tinyllama-1.1b"), 2048);
  cases.add("A33.mfu", 100 * flops_per_token(Convention::torchtitan, tiny) * 24e3 / a100);
  cases.add("A36.difference", 16 *
                                  static_cast<double>(llama_preset("llama3-8b").parameter_count()) *
                                  (1.0 / 8 - 1.0 / 128) / kGiB);
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

}  // namespace brrr::plan
