// Parameter counts to the unit: published numbers by formula, and formula = module, made on the null device
// where nothing is allocated.
#include <gtest/gtest.h>

#include "brrr/device/ledger.h"
#include "brrr/nn/classifiers.h"
#include "brrr/nn/latent_attention.h"
#include "brrr/nn/models.h"
#include "support/error_of.h"

namespace brrr {
namespace {

int64_t count_of(const ModelConfig& config) {
  ParameterScope nowhere({.device = Device::null()});
  Random random(1);
  return make_model(config, random)->parameter_count();
}

TEST(ModelSizes, PublishedGpt2) {
  EXPECT_EQ(gpt2_preset("gpt2-124m").parameter_count(), 124'439'808);
  EXPECT_EQ(gpt2_preset("gpt2-350m").parameter_count(), 354'823'168);
  EXPECT_EQ(gpt2_preset("gpt2-774m").parameter_count(), 774'030'080);
  EXPECT_EQ(gpt2_preset("gpt2-1558m").parameter_count(), 1'557'611'200);
  Gpt2Config without_bias = gpt2_preset("gpt2-124m");
  without_bias.bias = false;
  EXPECT_EQ(without_bias.parameter_count(), 124'337'664);
  EXPECT_EQ(
      (Gpt2Config{.context = 2048, .layers = 96, .heads = 96, .width = 12288}).parameter_count(),
      174'604'259'328);  // GPT-3
}

TEST(ModelSizes, PublishedLlamas) {
  const auto count = [](std::string_view name) { return llama_preset(name).parameter_count(); };
  EXPECT_EQ(count("smollm-135m"), 134'515'008);
  EXPECT_EQ(count("qwen2.5-0.5b"), 494'032'768);
  EXPECT_EQ(count("tinyllama-1.1b"), 1'100'048'384);
  EXPECT_EQ(count("qwen2.5-1.5b"), 1'543'714'304);
  EXPECT_EQ(count("llama2-7b"), 6'738'415'616);
  EXPECT_EQ(count("qwen2.5-7b"), 7'615'616'512);
  EXPECT_EQ(count("llama3-8b"), 8'030'261'248);
  const auto shape = [](const LlamaConfig& config) { return config.parameter_count(); };
  EXPECT_EQ(shape({.layers = 40, .width = 5120, .heads = 40, .hidden = 13824}), 13'015'864'320);
  EXPECT_EQ(shape({.layers = 80, .width = 8192, .heads = 64, .kv_heads = 8, .hidden = 28672}),
            68'976'648'192);  // Llama-2 70B
  EXPECT_EQ(shape({.vocab = 128256,
                   .layers = 80,
                   .width = 8192,
                   .heads = 64,
                   .kv_heads = 8,
                   .hidden = 28672}),
            70'553'706'496);  // Llama-3 70B
  EXPECT_EQ(shape({.vocab = 128256,
                   .layers = 126,
                   .width = 16384,
                   .heads = 128,
                   .kv_heads = 8,
                   .hidden = 53248}),
            405'853'388'800);
  EXPECT_EQ(shape({.vocab = 128256,
                   .layers = 36,
                   .width = 2048,
                   .heads = 16,
                   .kv_heads = 4,
                   .hidden = 11008,
                   .tied = true}),
            3'075'098'624);  // SmolLM3
}

// Tables of tokens that are the head count once. Qwen's card gives 0.44, 1.4, 3.6 and 6.95 billion parameters without
// them, the report of Gemma 2 (arXiv 2408.00118, table 1) 2,024,517,888, 8,324,201,984 and 26,047,480,320.
TEST(ModelSizes, PublishedQwen3AndGemma2) {
  const auto count = [](std::string_view name) { return parameter_count(model_preset(name)); };
  EXPECT_EQ(count("qwen3-0.6b"), 596'049'920);
  EXPECT_EQ(count("qwen3-1.7b"), 1'720'574'976);
  EXPECT_EQ(count("qwen3-4b"), 4'022'468'096);
  EXPECT_EQ(count("qwen3-8b"), 8'190'735'360);
  EXPECT_EQ(count("gemma-2-2b"), 2'024'517'888 + 256'000 * int64_t{2304});
  EXPECT_EQ(count("gemma-2-9b"), 8'324'201'984 + 256'000 * int64_t{3584});
  EXPECT_EQ(count("gemma-2-27b"), 26'047'480'320 + 256'000 * int64_t{4608});
}

TEST(ModelSizes, PublishedMixturesOfExperts) {
  const LlamaConfig small{.layers = 32,
                          .width = 4096,
                          .heads = 32,
                          .kv_heads = 8,
                          .hidden = 14336,
                          .experts = 8,
                          .top_k = 2};
  EXPECT_EQ(small.parameter_count(), 46'702'792'704);
  EXPECT_EQ(small.active_parameter_count(), 12'879'925'248);
  const LlamaConfig large{.layers = 56,
                          .width = 6144,
                          .heads = 48,
                          .kv_heads = 8,
                          .hidden = 16384,
                          .experts = 8,
                          .top_k = 2};
  EXPECT_EQ(large.parameter_count(), 140'620'634'112);
  EXPECT_EQ(large.active_parameter_count(), 39'152'031'744);
}

// DeepSeek-V3: h 7168, 128 heads, ranks 1536 and 512, heads of 128 + 64 and 128.
TEST(ModelSizes, LatentAttentionOfDeepSeek) {
  const LatentAttentionOptions v3{.heads = 128,
                                  .q_rank = 1536,
                                  .kv_rank = 512,
                                  .nope_dim = 128,
                                  .rope_dim = 64,
                                  .value_dim = 128};
  const int64_t q = 7168 * 1536 + 1536 * 128 * (128 + 64),
                kv = 7168 * (512 + 64) + 512 * 128 * (128 + 128), out = 128 * 128 * 7168,
                norms = 1536 + 512;
  EXPECT_EQ(LatentAttention::count_for(7168, v3), q + kv + out + norms);
  ParameterScope nowhere({.device = Device::null()});
  Random random(1);
  EXPECT_EQ(LatentAttention(7168, random, v3).parameter_count(), q + kv + out + norms);
}

// Every preset, up to 8B, without a byte.
TEST(ModelSizes, FormulasAreThoseOfTheModules) {
  const Bytes before = ledger().live();
  for (std::string_view name : model_presets())
    EXPECT_EQ(count_of(model_preset(name)), parameter_count(model_preset(name))) << name;
  EXPECT_EQ(ledger().live(), before);
  LlamaConfig all = llama_preset("llama-moe-tiny");
  all.qkv_bias = all.qk_norm = true;
  all.tied = false;
  all.head_dim = 24;
  all.expert_hidden = 40;
  all.shared_expert_hidden = 8;
  EXPECT_EQ(count_of(all), all.parameter_count());
  LlamaConfig latent = llama_preset("llama-mla-tiny");
  latent.q_rank = 0;
  EXPECT_EQ(count_of(latent), latent.parameter_count());
  Gpt2Config without_bias = gpt2_preset("gpt2-tiny");
  without_bias.bias = false;
  EXPECT_EQ(count_of(without_bias), without_bias.parameter_count());
  const RecurrentLmConfig tied{.cell = Cell::gru, .layers = 3, .width = 12, .tied = true};
  EXPECT_EQ(count_of(tied), tied.parameter_count());
}

TEST(ModelSizes, Classifiers) {
  Random random(1);
  const MlpConfig mlp{.inputs = 20, .hidden = {7, 5}, .outputs = 3};
  EXPECT_EQ(mlp.parameter_count(), 21 * 7 + 8 * 5 + 6 * 3);
  EXPECT_EQ(Mlp(mlp, random).parameter_count(), mlp.parameter_count());
  const CnnConfig cnn{.channels = 3, .height = 12, .width = 10, .filters = {4, 6}, .hidden = 8};
  EXPECT_EQ(cnn.parameter_count(), (27 + 1) * 4 + (36 + 1) * 6 + (6 * 3 * 2 + 1) * 8 + 9 * 10);
  EXPECT_EQ(Cnn(cnn, random).parameter_count(), cnn.parameter_count());
}

TEST(Models, ConfigurationsGoThroughJson) {
  for (std::string_view name : model_presets()) {
    const ModelConfig config = model_preset(name);
    EXPECT_EQ(model_from_json(to_json(config)), config) << name;
  }
  EXPECT_EQ(model_from_json(R"({"family": "gpt2", "layers": 3})"),
            ModelConfig(Gpt2Config{.layers = 3}));
}

TEST(Models, BadConfigurationsAreRefused) {
  const auto message = [](std::string_view text) {
    return error_of([&] { model_from_json(text); });
  };
  EXPECT_NE(message("[1]").find("\"family\""), std::string::npos);
  EXPECT_NE(message("{").find("JSON object"), std::string::npos);
  EXPECT_NE(message(R"({"family": "t5"})").find("gpt2, llama, qwen3, gemma2 or recurrent"),
            std::string::npos);
  EXPECT_NE(message(R"({"family": "gpt2", "leyers": 2})").find("no setting \"leyers\""),
            std::string::npos);
  EXPECT_NE(message(R"({"family": "gpt2", "layers": 2.5})").find("whole number"),
            std::string::npos);
  EXPECT_NE(message(R"({"family": "recurrent", "cell": "lstn"})").find("rnn, gru, lstm"),
            std::string::npos);
  EXPECT_NE(error_of([] { model_preset("gpt5"); }).find("llama3-8b"), std::string::npos);
}

}  // namespace
}  // namespace brrr
