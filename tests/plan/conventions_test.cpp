// Counts of FLOPs by convention, models from files, and sizes that waste a device.
#include "brrr/plan/conventions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>

#include "brrr/plan/gpu_rates.h"
#include "brrr/plan/lint.h"
#include "brrr/plan/model/model_cost.h"
#include "brrr/plan/model/model_source.h"
#include "brrr/train/setup.h"
#include "support/error_of.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using testing::HasSubstr;

plan::FlopFacts facts_of(const ModelConfig& config, int64_t seq) {
  const hardware::Rates rates =
      plan::gpu_rates(hardware::find_gpu("h100"), compiler::Precision::bf16_mixed);
  return plan::flop_facts(config, plan::model_cost(config, {.seq = seq}, rates).total(), seq);
}

TEST(Conventions, NanoGptsCountIsThePublishedOne) {
  Gpt2Config config = gpt2_preset("gpt2-124m");
  config.bias = false;
  const plan::FlopFacts facts = facts_of(config, 1024);
  EXPECT_NEAR(1024 * plan::flops_per_token(plan::Convention::nanogpt, facts), 875'062'886'400.0, 1);
}

// 72 B s L h^2 (1 + s/6h + V/12Lh), and 96 (...) with full recomputation (Narayanan et al. 2021).
TEST(Conventions, MegatronsCountIsItsFormula) {
  const double h = 2304, L = 24, s = 2048, V = 51200;
  const plan::FlopFacts facts = facts_of(
      Gpt2Config{.vocab = 51200, .context = 2048, .layers = 24, .heads = 24, .width = 2304}, 2048);
  const double model = 72 * L * h * h * (1 + s / (6 * h) + V / (12 * L * h));
  EXPECT_NEAR(plan::flops_per_token(plan::Convention::megatron, facts), model, 1e-9 * model);
  const double with_again = 96 * L * h * h * (1 + s / (6 * h) + V / (16 * L * h));
  EXPECT_NEAR(plan::flops_per_token(plan::Convention::megatron, facts) +
                  plan::recomputed_per_token(plan::Convention::megatron, facts,
                                             compiler::RematPolicy::full),
              with_again, 1e-9 * with_again);
}

TEST(Conventions, DifferByWhatTheyCount) {
  const plan::FlopFacts facts = facts_of(model_preset("llama3-8b"), 8192);
  const double palm = plan::flops_per_token(plan::Convention::palm, facts),
               titan = plan::flops_per_token(plan::Convention::torchtitan, facts);
  EXPECT_NEAR(palm - titan, 6 * 128256.0 * 4096, 1) << "the input table";
  EXPECT_NEAR(palm - plan::flops_per_token(plan::Convention::six_n, facts), 12.0 * 32 * 4096 * 8192,
              1);
  EXPECT_LT(plan::flops_per_token(plan::Convention::exact, facts), titan) << "half of the square";
  EXPECT_THAT(error_of([] { plan::parse_convention("7n"); }), HasSubstr("megatron"));
}

// What runs again is counted as the model is: 4 L a d (s + 1) / 2 where the mask is, 4 L a d s over the square.
TEST(Conventions, WhatRunsAgainIsCountedAsTheModelIs) {
  const plan::FlopFacts facts = facts_of(model_preset("llama3-8b"), 8192);
  const double square = 4.0 * 32 * 4096 * 8192, seen = 4.0 * 32 * 4096 * 4096.5,
               layers = 2 * facts.products - facts.head;
  const std::pair<plan::Convention, double> counts[] = {
      {plan::Convention::exact, seen},        {plan::Convention::six_n, 0},
      {plan::Convention::palm, square},       {plan::Convention::nanogpt, square},
      {plan::Convention::torchtitan, square}, {plan::Convention::megatron, square},
      {plan::Convention::llmc, square / 2}};
  for (const auto& [convention, attention] : counts) {
    const std::string_view name = plan::info_of(convention).name;
    EXPECT_NEAR(plan::recomputed_per_token(convention, facts, compiler::RematPolicy::selective),
                attention, 1)
        << name;
    EXPECT_NEAR(plan::recomputed_per_token(convention, facts, compiler::RematPolicy::full),
                layers + attention, 1)
        << name;
    EXPECT_EQ(plan::recomputed_per_token(convention, facts, compiler::RematPolicy::none), 0)
        << name;
  }
  EXPECT_NEAR(facts.head, 2.0 * 128256 * 4096, 1) << "which never runs again";
}

// A window of w leaves w (w + 1) / 2 + (s - w) w pairs, of the model and of what runs again.
TEST(Conventions, AWindowIsCountedInBoth) {
  const LlamaConfig config{
      .vocab = 32000, .context = 32768, .kv_heads = 8, .hidden = 14336, .window = 4096};
  const plan::FlopFacts facts = facts_of(config, 32768);
  const double w = 4096, s = 32768, pairs = w * (w + 1) / 2 + (s - w) * w;
  const double seen = 4.0 * 32 * 4096 * pairs / s;
  EXPECT_NEAR(plan::flops_per_token(plan::Convention::exact, facts), 6 * facts.products + 3 * seen,
              1e3);
  EXPECT_NEAR(
      plan::recomputed_per_token(plan::Convention::exact, facts, compiler::RematPolicy::selective),
      seen, 1e3);
}

// A policy that weighs kernels runs what its graph runs again; its attention follows the convention, too.
TEST(Conventions, AttentionOfAGraphIsCountedByConvention) {
  const plan::FlopFacts facts{
      .attention = 10, .attention_full = 20, .recomputed = 12, .recomputed_attention = 5};
  EXPECT_EQ(
      plan::recomputed_per_token(plan::Convention::exact, facts, compiler::RematPolicy::budget),
      12);
  EXPECT_EQ(
      plan::recomputed_per_token(plan::Convention::megatron, facts, compiler::RematPolicy::budget),
      7 + 10);
  EXPECT_EQ(
      plan::recomputed_per_token(plan::Convention::six_n, facts, compiler::RematPolicy::budget), 7);
}

// 2 N a sample holds where every weight multiplies once: a convolution uses its weights at every place.
TEST(Conventions, SixNFailsForConvolutions) {
  const training::StepSpec spec = training::on_paper(training::named_step("cnn", {.batch = 1}));
  const training::TrainingParts parts = training::make_parts(spec);
  const graph::Graph forward = parts.step->trace_forward(training::make_batch(spec));
  double flops = 0;
  for (const graph::Node& node : forward.nodes) {
    if (node.op->kind == OpKind::contraction)
      flops += static_cast<double>(graph::cost_of(forward, node).flops);
  }
  EXPECT_GT(flops, 5 * 2 * static_cast<double>(parts.trained().parameter_count()));
  EXPECT_THAT(error_of([] { plan::find_model("cnn"); }),
              HasSubstr("times 2 N, since a convolution"));
  EXPECT_THAT(error_of([] { plan::find_model("mlp"); }), HasSubstr("images and not from tokens"));
}

constexpr const char* kMixtral =
    R"({"model_type": "mixtral", "vocab_size": 32000, "max_position_embeddings": 32768,
 "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
 "intermediate_size": 14336, "num_local_experts": 8, "num_experts_per_tok": 2, "rms_norm_eps": 1e-05})";
constexpr const char* kLlama31 =
    R"({"model_type": "llama", "vocab_size": 128256, "max_position_embeddings": 131072,
 "num_hidden_layers": 126, "hidden_size": 16384, "num_attention_heads": 128, "num_key_value_heads": 8,
 "intermediate_size": 53248, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}})";
constexpr const char* kDeepSeek = R"({"model_type": "deepseek_v3", "vocab_size": 129280,
 "max_position_embeddings": 163840, "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128,
 "num_key_value_heads": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256,
 "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "q_lora_rank": 1536,
 "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
 "rope_scaling": {"type": "yarn"}})";

TEST(ModelSource, ConfigsOfHuggingFaceHaveTheCountsOfThePresets) {
  const TempFolder folder;
  const auto count = [&](const char* text) {
    return parameter_count(plan::find_model(folder.write("config.json", text).string()).config);
  };
  EXPECT_EQ(count(kMixtral), 46'702'792'704);
  EXPECT_EQ(count(kLlama31), 405'853'388'800);
  EXPECT_EQ(count(kDeepSeek), parameter_count(model_preset("deepseek-v3")));
}

// Fields that files may leave out, set to null or add, and the counts that their models have.
TEST(ModelSource, ConfigsOfHuggingFaceMayLeaveOutWhatTheirClassesHave) {
  struct Row {
    const char* text;
    int64_t count;
  };
  const Row rows[] = {
      // Llama 2 7B: no model_type, key heads, context or tied tables.
      {R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 32000, "num_hidden_layers": 32,
 "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 11008})",
       6'738'415'616},
      // Llama 3.2 1B: heads of a given size, a tied head, stretched positions.
      {R"({"model_type": "llama", "vocab_size": 128256, "num_hidden_layers": 16, "hidden_size": 2048,
 "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192,
 "tie_word_embeddings": true, "rope_scaling": {"rope_type": "llama3", "factor": 32.0}})",
       1'235'814'400},
      // Mistral 7B: a window, and key heads as its class has them.
      {R"({"model_type": "mistral", "vocab_size": 32000, "num_hidden_layers": 32, "hidden_size": 4096,
 "num_attention_heads": 32, "intermediate_size": 14336, "sliding_window": 4096})",
       7'241'732'096},
      // Mistral Nemo: 32 heads of 128 are no width of 5120.
      {R"({"model_type": "mistral", "vocab_size": 131072, "num_hidden_layers": 40, "hidden_size": 5120,
 "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 14336,
 "sliding_window": null})",
       12'247'782'400},
      // Qwen2.5 0.5B and Qwen3 8B, whose heads are 128 where the file is silent.
      {R"({"model_type": "qwen2", "vocab_size": 151936, "num_hidden_layers": 24, "hidden_size": 896,
 "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864, "tie_word_embeddings": true,
 "use_sliding_window": false, "sliding_window": 32768, "max_window_layers": 21})",
       494'032'768},
      {R"({"model_type": "qwen3", "vocab_size": 151936, "num_hidden_layers": 36, "hidden_size": 4096,
 "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 12288})",
       8'190'735'360},
      {R"({"model_type": "smollm3", "vocab_size": 128256, "num_hidden_layers": 36, "hidden_size": 2048,
 "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 11008, "tie_word_embeddings": true})",
       3'075'098'624},
      // Mixtral 8x22B: two of eight experts are what its class has.
      {R"({"model_type": "mixtral", "vocab_size": 32000, "num_hidden_layers": 56, "hidden_size": 6144,
 "num_attention_heads": 48, "num_key_value_heads": 8, "intermediate_size": 16384})",
       140'620'634'112},
      // DeepSeek-V2-Lite: queries without a low rank.
      {R"({"model_type": "deepseek_v2", "vocab_size": 102400, "num_hidden_layers": 27, "hidden_size": 2048,
 "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 10944, "moe_intermediate_size": 1408,
 "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
 "q_lora_rank": null, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})",
       15'706'484'224},
      // GPT-2 with a narrow network, L (4 h f for 8 h f) less: 124,439,808 - 12 (2 h + 1) (3072 - 2048).
      {R"({"model_type": "gpt2", "vocab_size": 50257, "n_layer": 12, "n_head": 12, "n_embd": 768, "n_inner": 2048})",
       124'439'808 - 12 * (2 * 768 + 1) * 1024}};
  const TempFolder folder;
  for (const Row& row : rows) {
    const ModelConfig config =
        plan::find_model(folder.write("config.json", row.text).string()).config;
    EXPECT_EQ(parameter_count(config), row.count) << row.text;
  }
}

TEST(ModelSource, ConfigsOfHuggingFaceAreRefusedByRule) {
  const TempFolder folder;
  const auto refusal = [&](const char* text) {
    return error_of([&] { plan::find_model(folder.write("config.json", text).string()); });
  };
  EXPECT_THAT(refusal(R"({"model_type": "bert"})"), HasSubstr("model_type bert is not known"));
  EXPECT_THAT(refusal("{"), HasSubstr("must be a JSON object"));
  const char* sizes =
      R"({"model_type": "llama", "vocab_size": 32000, "num_hidden_layers": 2, "hidden_size": %s,
 "num_attention_heads": %s, "intermediate_size": 64%s})";
  const auto with = [&](const char* width, const char* heads, const char* more) {
    char text[512];
    std::snprintf(text, sizeof text, sizes, width, heads, more);
    return refusal(text);
  };
  EXPECT_THAT(with("\"64\"", "4", ""),
              HasSubstr("hidden_size is \"64\"; it must be a whole number"));
  EXPECT_THAT(with("-64", "4", ""),
              HasSubstr("hidden_size is -64; it must be a whole number of 1 to"));
  EXPECT_THAT(with("64", "5", ""), HasSubstr("5 heads do not divide"));
  EXPECT_THAT(with("64", "4", ", \"attention_bias\": true"), HasSubstr("attention_bias is true"));
}

TEST(ModelSource, TomlFilesChangeAPresetOrGiveAFamily) {
  const TempFolder folder;
  const auto read = [&](const char* text) {
    return plan::find_model(folder.write("m.toml", text).string()).config;
  };
  EXPECT_EQ(read("[model]\npreset = \"llama3-8b\"\nlayers = 16\n").size("layers"), 16);
  EXPECT_EQ(parameter_count(read("[model]\nfamily = \"gpt2\"\n")), 124'439'808);
  EXPECT_THAT(error_of([&] { read("[model]\nfamily = \"gpt2\"\ncolour = 1\n"); }),
              HasSubstr("colour"));
}

TEST(ModelSource, FreeShapesAndRefusals) {
  plan::ShapeOptions shape{
      .family = "llama", .layers = 32, .hidden = 4096, .heads = 32, .ffn = 11008};
  EXPECT_EQ(parameter_count(plan::find_model("", shape).config), 6'738'415'616);
  shape.heads = 33;
  EXPECT_THAT(error_of([&] { plan::find_model("", shape); }), HasSubstr("33 heads do not divide"));
  shape.heads = 32, shape.layers = -1;
  EXPECT_THAT(error_of([&] { plan::find_model("", shape); }),
              HasSubstr("--layers -1 makes no sense; use 1 to 10000"));
  EXPECT_THAT(error_of([] { plan::find_model("llama3-9b"); }), HasSubstr("did you mean"));
  EXPECT_THAT(error_of([] { plan::find_model(""); }), HasSubstr("--family"));
}

TEST(Lint, PricesTheMatmulsOfTheTracedStep) {
  for (const char* name : {"gpt2-124m", "llama3-8b", "qwen2.5-0.5b", "llama2-70b"}) {
    const ModelConfig config = model_preset(name);
    const hardware::Rates rates =
        plan::gpu_rates(hardware::find_gpu("h100"), compiler::Precision::bf16_mixed);
    EXPECT_EQ(plan::linted_flops(config, 128),
              plan::model_cost(config, {.batch = 1, .seq = 128}, rates).total().products)
        << name;
  }
}

TEST(Lint, FindsTheVocabularyOfGpt2) {
  const std::vector<plan::LintFinding> findings =
      plan::lint(model_preset("gpt2-124m"), hardware::find_gpu("h100"));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].what, "vocabulary 50257");
  EXPECT_EQ(findings[0].change, "pad to 50304; `brrr train` does, inside its step");
  EXPECT_GT(findings[0].gain, 0.05);
  EXPECT_EQ(plan::whole_tiles_of_vocab(50257), 50304);
  EXPECT_EQ(plan::whole_tiles_of_vocab(50304), 50304);
  for (const plan::LintFinding& f :
       plan::lint(model_preset("llama3-8b"), hardware::find_gpu("h100")))
    EXPECT_EQ(f.what.find("vocabulary"), std::string::npos) << f.what;
}

// Every size that wastes one device has a gain, and taking the advice leaves less to gain.
TEST(Lint, GainsArePredicted) {
  plan::ShapeOptions shape{
      .family = "gpt2", .layers = 12, .hidden = 800, .heads = 10, .vocab = 50257};
  const hardware::GpuSpec& gpu = hardware::find_gpu("h100");
  std::map<std::string, double> gains;
  for (const plan::LintFinding& f : plan::lint(plan::find_model("", shape).config, gpu))
    gains[f.what] = f.gain;
  for (const char* what : {"vocabulary 50257", "width 800", "heads of 80"}) {
    ASSERT_TRUE(gains.contains(what)) << what;
    EXPECT_GT(gains[what], 0.001) << what;
    EXPECT_LT(gains[what], 0.5) << what;
  }
  EXPECT_EQ(gains["10 heads"], 0);
  const std::vector<plan::LintFinding> few = plan::lint(
      model_preset("gpt2-124m"), gpu, {.tokens = 2048});  // 48 tiles for 132 multiprocessors
  const auto out = std::find_if(few.begin(), few.end(), [](const plan::LintFinding& f) {
    return f.what == "out [2048 x 768]";
  });
  ASSERT_NE(out, few.end());
  EXPECT_EQ(out->change, "4096 tokens at a time");
  EXPECT_GT(out->gain, 0.01);
  shape.hidden = 1024, shape.heads = 16, shape.vocab = 50304;
  for (const plan::LintFinding& f : plan::lint(plan::find_model("", shape).config, gpu))
    EXPECT_LT(f.gain, 0.05) << f.what;
}

}  // namespace
}  // namespace brrr
