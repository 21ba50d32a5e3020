// Two short models tell everything about a long one, and closed formulas agree with the graph.
#include "brrr/plan/model/model_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/graph/call.h"
#include "brrr/plan/conventions.h"
#include "brrr/plan/gpu_rates.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::HasSubstr;

hardware::Rates h100_rates() {
  return plan::gpu_rates(hardware::find_gpu("h100"), compiler::Precision::bf16_mixed);
}

ModelConfig with_layers(ModelConfig config, int64_t layers, int64_t dense = 0) {
  config.set("layers", layers);
  if (auto* llama = config.get_if<LlamaConfig>()) llama->dense_layers = dense;
  return config;
}

void expect_same(const plan::StepCost& a, const plan::StepCost& b, const std::string& name) {
  EXPECT_EQ(a.products, b.products) << name;
  EXPECT_EQ(a.head, b.head) << name;
  EXPECT_EQ(a.attention, b.attention) << name;
  EXPECT_EQ(a.recomputed, b.recomputed) << name;
  EXPECT_EQ(a.parameters(), b.parameters()) << name;
  EXPECT_EQ(a.experts, b.experts) << name;
  EXPECT_EQ(a.activations, b.activations) << name;
  EXPECT_EQ(a.logits, b.logits) << name;
  EXPECT_NEAR(a.kernels, b.kernels, 8)
      << name << ": small updates and reports are grouped by how many there are";
  EXPECT_EQ(a.forward_traffic, b.forward_traffic) << name;
  EXPECT_NEAR(a.seconds(), b.seconds(), 0.001 * b.seconds()) << name;
}

TEST(ModelCost, ShortModelsGiveTheCostOfLongOnes) {
  for (compiler::RematPolicy policy :
       {compiler::RematPolicy::none, compiler::RematPolicy::selective,
        compiler::RematPolicy::full}) {
    for (const char* name :
         {"gpt2-tiny", "llama-tiny", "llama-moe-tiny", "llama-mla-tiny", "qwen3-tiny"}) {
      const ModelConfig config = with_layers(model_preset(name), 7);
      const plan::CostOptions options{.batch = 2, .seq = 64, .recompute = policy};
      expect_same(plan::model_cost(config, options, h100_rates()).total(),
                  plan::traced_cost(config, options, h100_rates()),
                  join_text(name, " ", compiler::policy_name(policy)));
    }
  }
}

// Windows of Gemma 2 come in turn, so that layers are counted in pairs: an odd last one as well.
TEST(ModelCost, AlternatingWindowsAreCountedByTurns) {
  for (const int64_t layers : {5, 8}) {
    const ModelConfig config = with_layers(model_preset("gemma-2-tiny"), layers);
    const plan::CostOptions options{.batch = 2, .seq = 64};
    const plan::StepCost cost = plan::traced_cost(config, options, h100_rates());
    expect_same(plan::model_cost(config, options, h100_rates()).total(), cost,
                join_text("gemma2 of ", layers));
    ModelConfig global = config;
    global.set("window", int64_t{64});
    EXPECT_LT(cost.attention, plan::traced_cost(global, options, h100_rates()).attention);
  }
}

// Also where the fullest instant of a short model is another one than that of a long one: few tokens beside a wide
// vocabulary make a short model fullest at its loss or at the gradients of its table.
TEST(ModelCost, ShortModelsGiveTheFullestInstantOfLongOnes) {
  for (compiler::Precision precision :
       {compiler::Precision::bf16_mixed, compiler::Precision::fp8_mixed}) {
    for (compiler::RematPolicy policy :
         {compiler::RematPolicy::none, compiler::RematPolicy::selective,
          compiler::RematPolicy::full}) {
      for (const char* name :
           {"gpt2-124m", "llama-tiny", "llama-moe-tiny", "llama-mla-tiny", "qwen2.5-0.5b"}) {
        for (int64_t seq : {64, 512}) {
          const ModelConfig config = with_layers(model_preset(name), 12);
          const plan::CostOptions options{
              .batch = 2, .seq = seq, .precision = precision, .recompute = policy};
          const auto traced =
              static_cast<double>(plan::traced_memory(config, options, h100_rates()).fullest);
          // Routes of a mixture that runs again wait for the gradient of its own loss, in every layer: 27 bytes a token
          // here, which layers of other sizes make nothing of.
          const bool waits =
              join_text(name) == "llama-moe-tiny" && policy == compiler::RematPolicy::full;
          EXPECT_NEAR(plan::model_cost(config, options, h100_rates()).fullest(), traced,
                      (waits ? 0.05 : 0.02) * traced)
              << name << " " << compiler::policy_name(policy) << " "
              << compiler::precision_name(precision) << " " << seq;
        }
      }
    }
  }
}

// 6 GiB of them are made in eight chunks; their FLOPs are those of the whole.
TEST(ModelCost, LogitsAreThoseOfOneChunk) {
  const ModelConfig config = with_layers(model_preset("gpt2-124m"), 5);
  const plan::CostOptions options{.batch = 64,
                                  .seq = 1024,
                                  .precision = compiler::Precision::bf16_mixed,
                                  .recompute = compiler::RematPolicy::selective};
  const plan::StepCost cost = plan::traced_cost(config, options, h100_rates());
  EXPECT_EQ(cost.logits, 2.0 * 8192 * 50257);
  EXPECT_EQ(cost.head, 2.0 * 65536 * 50257 * 768);
  expect_same(plan::model_cost(config, options, h100_rates()).total(), cost, "gpt2-124m");
}

TEST(ModelCost, MixturesWithDenseFirstLayersHaveTwoKinds) {
  const ModelConfig config = with_layers(model_preset("llama-moe-tiny"), 8, 3);
  const plan::CostOptions options{.batch = 2, .seq = 64};
  const plan::ModelCost cost = plan::model_cost(config, options, h100_rates());
  ASSERT_EQ(cost.layers.size(), 2u);
  EXPECT_EQ(cost.layers[0].count, 3);
  EXPECT_EQ(cost.layers[1].count, 5);
  expect_same(cost.total(), plan::traced_cost(config, options, h100_rates()), "mixture");
}

TEST(ModelCost, ParametersOfPresetsAreExact) {
  const std::pair<const char*, int64_t> known[] = {
      {"gpt2-124m", 124'439'808},       {"gpt2-350m", 354'823'168},
      {"gpt2-774m", 774'030'080},       {"gpt2-1558m", 1'557'611'200},
      {"gpt3-175b", 174'604'259'328},   {"llama2-7b", 6'738'415'616},
      {"llama2-13b", 13'015'864'320},   {"llama2-70b", 68'976'648'192},
      {"llama3-8b", 8'030'261'248},     {"llama3-70b", 70'553'706'496},
      {"llama3-405b", 405'853'388'800}, {"tinyllama-1.1b", 1'100'048'384},
      {"qwen2.5-0.5b", 494'032'768},    {"qwen2.5-1.5b", 1'543'714'304},
      {"qwen2.5-7b", 7'615'616'512},    {"mixtral-8x7b", 46'702'792'704},
      {"qwen3-0.6b", 596'049'920},      {"gemma-2-9b", 9'241'705'984}};
  for (const auto& [name, count] : known) {
    const ModelConfig config = model_preset(name);
    EXPECT_EQ(parameter_count(config), count) << name;
    const plan::StepCost cost =
        plan::model_cost(config, {.batch = 1, .seq = 64}, h100_rates()).total();
    EXPECT_EQ(static_cast<int64_t>(cost.parameters()), count) << name << ", from the traced model";
  }
  EXPECT_EQ(llama_preset("mixtral-8x7b").active_parameter_count(), 12'879'925'248);
}

TEST(ModelCost, DeepSeekV3Has671And37BillionParameters) {
  const LlamaConfig config = llama_preset("deepseek-v3");
  EXPECT_NEAR(static_cast<double>(config.parameter_count()), 671e9, 0.1e9);
  EXPECT_NEAR(static_cast<double>(config.active_parameter_count()), 37.5e9, 0.2e9);
  const plan::StepCost cost =
      plan::model_cost(config, {.batch = 1, .seq = 128}, h100_rates()).total();
  EXPECT_EQ(static_cast<int64_t>(cost.parameters()), config.parameter_count());
}

// 124M, 1024 tokens: forward 291,648,307,200 with the whole square of attention (nanoGPT's notebook).
TEST(ModelCost, Gpt2ForwardFlopsAreThePublishedOnes) {
  const plan::StepCost cost =
      plan::model_cost(gpt2_preset("gpt2-124m"), {.batch = 1, .seq = 1024}, h100_rates()).total();
  EXPECT_EQ(cost.products + cost.attention_all, 291'648'307'200.0);
  const double causal = 12.0 * 4 * 768 * 1024 * 1025 / 2;
  EXPECT_EQ(cost.attention, causal);
}

TEST(ModelCost, ClosedFormulasAgreeWithTheGraph) {
  for (const char* name : {"gpt2-350m", "llama3-8b", "qwen2.5-1.5b", "llama2-70b"}) {
    const ModelConfig config = model_preset(name);
    const ModelShape s = shape_of(config);
    const double seq = 512, h = static_cast<double>(s.width), f = static_cast<double>(s.hidden),
                 ad = s.pair_width,
                 kd = ad / static_cast<double>(s.heads) * static_cast<double>(s.kv_heads);
    const double gates = shape_of(config).gated ? 3 : 2;
    const double weights =
        static_cast<double>(s.layers) * (2 * h * ad + 2 * h * kd + gates * h * f) +
        static_cast<double>(s.vocab) * h;
    const plan::StepCost cost =
        plan::model_cost(config, {.batch = 1, .seq = 512}, h100_rates()).total();
    EXPECT_EQ(cost.products, 2 * weights * seq) << name;
    EXPECT_EQ(cost.attention_all, 4 * static_cast<double>(s.layers) * ad * seq * seq) << name;
    EXPECT_EQ(cost.attention, 4 * static_cast<double>(s.layers) * ad * seq * (seq + 1) / 2) << name;
  }
}

// A mixture multiplies the weights of the experts that a token goes through.
TEST(ModelCost, MixturesCountActiveExperts) {
  const LlamaConfig config = llama_preset("mixtral-8x7b");
  const plan::StepCost cost =
      plan::model_cost(config, {.batch = 1, .seq = 256}, h100_rates()).total();
  const double norms = (2.0 * 32 + 1) * 4096, table = 32000.0 * 4096;
  EXPECT_EQ(cost.products / 2 / 256,
            static_cast<double>(config.active_parameter_count()) - norms - table);
}

// A plan takes as much work for 126 layers as for 8: the ops called are those that make the parameters of the short
// models, and these have few layers whatever the model has.
TEST(ModelCost, WorkDoesNotGrowWithLayers) {
  const auto calls_for = [](int64_t layers, double parameters) {
    const CostCounter counter;
    const plan::StepCost cost = plan::model_cost(with_layers(model_preset("llama3-405b"), layers),
                                                 {.batch = 1, .seq = 8192}, h100_rates())
                                    .total();
    EXPECT_EQ(cost.parameters(), parameters);
    return counter.calls();
  };
  const int64_t calls = calls_for(126, 405'853'388'800.0);
  EXPECT_GT(calls, 0);
  EXPECT_EQ(calls, calls_for(8, 8.0 * 3'187'703'808 + 2.0 * 128256 * 16384 + 16384));
}

TEST(TensorShard, DividesHeadsHiddenUnitsAndVocabulary) {
  const auto shard = plan::tensor_shard(model_preset("llama3-8b"), 8).get<LlamaConfig>();
  EXPECT_EQ(shard.heads, 4);
  EXPECT_EQ(shard.kv_heads, 1);
  EXPECT_EQ(shard.head_dim, 128);
  EXPECT_EQ(shard.hidden, 14336 / 8);
  EXPECT_EQ(shard.width, 4096);
  const plan::CostOptions options{.batch = 1, .seq = 256};
  const plan::StepCost whole =
      plan::model_cost(model_preset("llama3-8b"), options, h100_rates()).total();
  EXPECT_EQ(plan::model_cost(shard, options, h100_rates()).total().products * 8, whole.products);
  EXPECT_THAT(error_of([] { plan::tensor_shard(model_preset("gpt2-1558m"), 8); }),
              HasSubstr("does not divide 25 heads"));
}

// K22 without dropout and with flash attention, GPT block: sb(32h + 4a) bytes a layer at f = 4h; the graph may keep
// a little more or less where ops are fused, but not a tenth.
TEST(ModelCost, ActivationsAreThoseOfTheFormula) {
  const plan::ModelCost cost =
      plan::model_cost(gpt2_preset("gpt2-1558m"), {.batch = 1, .seq = 1024}, h100_rates());
  const double formula = 1024.0 * (32 * 1600 + 4 * 25);
  EXPECT_NEAR(cost.layers[0].one.activations, formula, 0.1 * formula);
}

}  // namespace
}  // namespace brrr
