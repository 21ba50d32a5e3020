// What a plan is asked about: every field of a config.json and every size is exact or refused with its rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "brrr/infer/huggingface.h"
#include "brrr/plan/gpu_rates.h"
#include "brrr/plan/model/model_cost.h"
#include "brrr/plan/model/model_limits.h"
#include "brrr/plan/model/model_source.h"
#include "support/error_of.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kNoError = "no error";

// Files with every field that is read.
json full_config(const std::string& type) {
  if (type == "gpt2")
    return {{"model_type", type}, {"vocab_size", 50257}, {"n_positions", 1024}, {"n_layer", 12},
            {"n_head", 12},       {"n_embd", 768},       {"n_inner", 3072}};
  json file{
      {"model_type", type},        {"vocab_size", 32000},      {"max_position_embeddings", 4096},
      {"num_hidden_layers", 8},    {"hidden_size", 1024},      {"num_attention_heads", 16},
      {"num_key_value_heads", 16}, {"intermediate_size", 2816}};
  if (type.starts_with("deepseek")) {
    file.update({{"moe_intermediate_size", 256},
                 {"n_routed_experts", 32},
                 {"n_shared_experts", 1},
                 {"num_experts_per_tok", 4},
                 {"first_k_dense_replace", 1},
                 {"q_lora_rank", 192},
                 {"kv_lora_rank", 128},
                 {"qk_nope_head_dim", 32},
                 {"qk_rope_head_dim", 16},
                 {"v_head_dim", 32},
                 {"moe_layer_freq", 1}});
    return file;
  }
  file["head_dim"] = 64;
  if (type == "mistral" || type == "mixtral" || type == "gemma2") file["sliding_window"] = 1024;
  if (type == "mixtral") file.update({{"num_local_experts", 8}, {"num_experts_per_tok", 2}});
  return file;
}

constexpr const char* kTypes[] = {"gpt2",  "llama",   "mistral",     "mixtral",     "qwen2",
                                  "qwen3", "smollm3", "deepseek_v2", "deepseek_v3", "gemma2"};

std::string refusal_of(const json& file) {
  return error_of([&] { plan::check_model(infer::shape_from_huggingface(file.dump())); });
}
int64_t count_of(const json& file) {
  return parameter_count(infer::shape_from_huggingface(file.dump()));
}

// One reader for all: nothing is cut off, wrapped round or taken for absent.
TEST(ConfigFields, AreWholeNumbersInTheirRange) {
  const char* bad[] = {"128.5", "2.0",
                       "-1",    "1e30",
                       "1e18",  "100000001",
                       "\"8\"", "true",
                       "[128]", "9223372036854775808",
                       "{}",    "18446744073709551617"};
  for (const char* type : kTypes) {
    const json file = full_config(type);
    ASSERT_EQ(refusal_of(file), kNoError) << type;
    for (const auto& [key, value] : file.items()) {
      if (key == "model_type") continue;
      for (const char* text : bad) {
        json changed = file;
        changed[key] = json::parse(text);
        EXPECT_THAT(refusal_of(changed),
                    AllOf(HasSubstr("config.json: " + key + " is "), HasSubstr("it must be ")))
            << type << ": " << text;
      }
      if (key == "n_shared_experts" || key == "first_k_dense_replace") continue;  // may be none
      json changed = file;
      changed[key] = 0;
      EXPECT_THAT(refusal_of(changed), HasSubstr("config.json: " + key + " is 0")) << type;
    }
  }
}

TEST(ConfigFields, MustBeThereWhereNoDefaultIsSure) {
  const std::pair<const char*, std::vector<const char*>> required[] = {
      {"gpt2", {"vocab_size", "n_layer", "n_head", "n_embd"}},
      {"llama",
       {"vocab_size", "num_hidden_layers", "hidden_size", "num_attention_heads",
        "intermediate_size"}},
      {"deepseek_v2", {"n_routed_experts", "n_shared_experts", "num_experts_per_tok"}}};
  for (const auto& [type, keys] : required) {
    for (const char* key : keys) {
      json file = full_config(type);
      file.erase(key);
      EXPECT_THAT(refusal_of(file), HasSubstr(join_text(key, " is missing"))) << type;
      file[key] = nullptr;
      if (std::string_view(key) != "n_shared_experts") {
        EXPECT_THAT(refusal_of(file), HasSubstr(join_text(key, " is null"))) << type;
      }
    }
  }
}

// A file without the field, and with it null, has the parameters of the file with the class's own default.
TEST(ConfigFields, LeftOutAreWhatTheirClassHas) {
  struct Row {
    const char *type, *key;
    json by_default;
    json by_null = "refused";
  };
  const Row rows[] = {{"gpt2", "n_inner", 4 * 768, 4 * 768},
                      {"gpt2", "n_positions", 1024},
                      {"llama", "num_key_value_heads", 16, 16},
                      {"llama", "head_dim", 64, 64},
                      {"llama", "tie_word_embeddings", false, false},
                      {"mistral", "num_key_value_heads", 8, 16},
                      {"mixtral", "num_key_value_heads", 8, 16},
                      {"mixtral", "num_local_experts", 8},
                      {"mixtral", "num_experts_per_tok", 2},
                      {"qwen3", "head_dim", 128},
                      {"gemma2", "head_dim", 256},
                      {"gemma2", "num_key_value_heads", 4, 16},
                      {"gemma2", "sliding_window", 4096},
                      {"smollm3", "num_key_value_heads", 4, 16},
                      {"smollm3", "tie_word_embeddings", true, true},
                      {"deepseek_v2", "q_lora_rank", 1536},
                      {"deepseek_v2", "kv_lora_rank", 512},
                      {"deepseek_v2", "moe_intermediate_size", 1407},
                      {"deepseek_v2", "first_k_dense_replace", 0},
                      {"deepseek_v3", "q_lora_rank", 1536},
                      {"deepseek_v3", "kv_lora_rank", 512},
                      {"deepseek_v3", "qk_nope_head_dim", 128},
                      {"deepseek_v3", "qk_rope_head_dim", 64},
                      {"deepseek_v3", "v_head_dim", 128},
                      {"deepseek_v3", "moe_intermediate_size", 2048},
                      {"deepseek_v3", "n_routed_experts", 256},
                      {"deepseek_v3", "n_shared_experts", 1, 0},
                      {"deepseek_v3", "num_experts_per_tok", 8},
                      {"deepseek_v3", "first_k_dense_replace", 3}};
  for (const Row& row : rows) {
    json given = full_config(row.type), left_out = given, null = given;
    given[row.key] = row.by_default;
    left_out.erase(row.key);
    null[row.key] = nullptr;
    const ModelConfig with = infer::shape_from_huggingface(given.dump()),
                      without = infer::shape_from_huggingface(left_out.dump());
    // "4 width" and "width / heads" are kept as they are, not as their number.
    const bool is_derived = row.key == std::string_view("n_inner") ||
                            (row.key == std::string_view("head_dim") && row.by_default == 64);
    EXPECT_TRUE(is_derived || without == with) << row.type << " " << row.key;
    EXPECT_EQ(parameter_count(without), parameter_count(with)) << row.type << " " << row.key;
    if (std::string_view(row.key) == "q_lora_rank") {  // null: queries without a low rank
      EXPECT_EQ(infer::shape_from_huggingface(null.dump()).get<LlamaConfig>().q_rank, 0);
    } else if (row.by_null == "refused") {
      EXPECT_THAT(refusal_of(null), HasSubstr(join_text(row.key, " is null"))) << row.type;
    } else {
      given[row.key] = row.by_null;
      EXPECT_EQ(count_of(null), count_of(given)) << row.type << " " << row.key;
    }
  }
}

TEST(ConfigFields, PositionsAndNormsAreThoseOfTheClass) {
  const auto read = [](const char* type) {
    return infer::config_from_huggingface(full_config(type).dump()).get<LlamaConfig>();
  };
  EXPECT_EQ(read("llama").rope_base, 1e4);
  EXPECT_EQ(read("mixtral").rope_base, 1e6);
  EXPECT_EQ(read("llama").norm_eps, 1e-6);
  EXPECT_EQ(read("mixtral").norm_eps, 1e-5);
  json mistral = full_config("mistral");
  mistral.erase("sliding_window");
  EXPECT_EQ(infer::shape_from_huggingface(mistral.dump()).get<LlamaConfig>().window, 4096);
  mistral["sliding_window"] = nullptr;
  EXPECT_EQ(infer::shape_from_huggingface(mistral.dump()).get<LlamaConfig>().window, 0);
}

TEST(ConfigFields, ThatChangeTheModelAreRefused) {
  struct Row {
    const char *type, *key, *value, *rule;
  };
  const Row rows[] = {
      {"llama", "architectures", R"(["GemmaForCausalLM"])",
       "GemmaForCausalLM beside model_type llama"},
      {"llama", "architectures", R"(["LlamaForSequenceClassification"])", "only LlamaForCausalLM"},
      {"gpt2", "architectures", R"(["GPT2DoubleHeadsModel"])", "only GPT2LMHeadModel"},
      {"llama", "architectures", R"("LlamaForCausalLM")", "not of its type"},
      {"gpt2", "add_cross_attention", "true", "add_cross_attention is true"},
      {"gpt2", "n_ctx", "2048", "n_ctx is 2048 and n_positions is 1024"},
      {"gpt2", "pruned_heads", R"({"0": [1]})", "pruned_heads"},
      {"llama", "is_encoder_decoder", "true", "is_encoder_decoder is true"},
      {"llama", "num_key_value_heads", "5", "does not divide 16 heads"},
      {"llama", "layer_types", R"(["sliding_attention"])",
       "layer_types names sliding_attention for layer 0; only full_attention in all layers"},
      {"gemma2", "layer_types", R"(["sliding_attention", "sliding_attention"])",
       "layer_types names sliding_attention for layer 1; only sliding_attention and "
       "full_attention"},
      {"gemma2", "hidden_activation", R"("gelu")", "hidden_activation is \"gelu\""},
      {"gemma2", "tie_word_embeddings", "false", "tie_word_embeddings is false"},
      {"gemma2", "query_pre_attn_scalar", "0",
       "query_pre_attn_scalar is 0; it must be a number above"},
      {"mixtral", "num_experts_per_tok", "9", "a whole number of 1 to 8"},
      {"deepseek_v3", "first_k_dense_replace", "9", "a whole number of 0 to 8"},
      {"deepseek_v3", "num_key_value_heads", "8", "latent attention has as many as heads, 16"},
      {"deepseek_v3", "qk_rope_head_dim", "15", "must be even"},
      {"deepseek_v3", "moe_layer_freq", "2", "moe_layer_freq is 2; it must be 1"},
      {"deepseek_v3", "n_shared_experts", "10000000", "a whole number of 0 to 10000"},
      {"llama", "rms_norm_eps", "0", "rms_norm_eps is 0; it must be a number above 0"}};
  for (const Row& row : rows) {
    json file = full_config(row.type);
    file[row.key] = json::parse(row.value);
    EXPECT_THAT(refusal_of(file), HasSubstr(row.rule)) << row.type << " " << row.key;
  }
  json file = full_config("llama");
  file["architectures"] = {"LlamaForCausalLM"};
  EXPECT_EQ(refusal_of(file), kNoError);
  file.erase("model_type");
  EXPECT_EQ(refusal_of(file), kNoError);
  file["architectures"] = {"LlamaForCausalLM", "MistralForCausalLM"};
  EXPECT_THAT(refusal_of(file), HasSubstr("MistralForCausalLM beside LlamaForCausalLM"));
}

// Two fields at once, from values at and beyond every edge: either an Error, or a model whose count is exact.
TEST(ConfigFields, AnyTwoTogetherAreExactOrRefused) {
  const char* values[] = {"null", "0",  "-1",      "1",         "2",    "3",
                          "7",    "64", "1000000", "100000000", "1e18", "-9223372036854775808"};
  int refused = 0, read = 0;
  for (const char* type : kTypes) {
    const json file = full_config(type);
    for (auto first = file.begin(); first != file.end(); ++first) {
      for (auto second = file.begin(); second != first; ++second) {
        if (first.key() == "model_type" || second.key() == "model_type") continue;
        for (const char* one : values) {
          for (const char* other : values) {
            json changed = file;
            changed[first.key()] = json::parse(one), changed[second.key()] = json::parse(other);
            try {
              const ModelConfig config = infer::shape_from_huggingface(changed.dump());
              plan::check_model(config);
              const double count = plan::parameters_of(config);
              ASSERT_TRUE(count >= 1 && count <= plan::kMostParameters) << changed.dump();
              const auto exact = static_cast<double>(parameter_count(config));
              ASSERT_NEAR(exact, count, 1e-15 * count) << changed.dump();
              ++read;
            } catch (const Error&) {
              ++refused;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 1000);
}

// One of a few sizes, by a fixed sequence.
class Sizes {
 public:
  template <typename T>
  T one_of(std::initializer_list<T> sizes) {
    return std::data(sizes)[random_() % sizes.size()];
  }

 private:
  std::mt19937 random_{7};
};

ModelConfig random_llama(Sizes& sizes) {
  LlamaConfig c{.vocab = sizes.one_of<int64_t>({17, 64, 1000}),
                .context = 16,
                .layers = sizes.one_of<int64_t>({1, 3, 5}),
                .width = sizes.one_of<int64_t>({16, 48}),
                .heads = 4,
                .kv_heads = sizes.one_of<int64_t>({0, 1, 2, 4}),
                .hidden = sizes.one_of<int64_t>({24, 40}),
                .tied = sizes.one_of({false, true})};
  c.head_dim = sizes.one_of<int64_t>({0, 8});
  c.qkv_bias = sizes.one_of({false, true}), c.qk_norm = sizes.one_of({false, true});
  if (sizes.one_of({false, true})) {
    c.experts = sizes.one_of<int64_t>({2, 6}), c.top_k = 2;
    c.expert_hidden = sizes.one_of<int64_t>({0, 12});
    c.shared_expert_hidden = sizes.one_of<int64_t>({0, 20});
    c.dense_layers = sizes.one_of<int64_t>({0, 1});
  }
  if (sizes.one_of({false, true})) {
    c.kv_rank = 6, c.q_rank = sizes.one_of<int64_t>({0, 5});
    c.nope_dim = 4, c.rope_dim = 2, c.value_dim = sizes.one_of<int64_t>({3, 8});
    c.kv_heads = 0, c.head_dim = 0, c.qkv_bias = c.qk_norm = false;
  }
  return c;
}

ModelConfig random_model(Sizes& sizes) {
  switch (sizes.one_of({0, 1, 1, 2})) {
    case 0:
      return Gpt2Config{.vocab = sizes.one_of<int64_t>({17, 64}),
                        .context = sizes.one_of<int64_t>({8, 32}),
                        .layers = sizes.one_of<int64_t>({1, 4}),
                        .heads = 4,
                        .width = sizes.one_of<int64_t>({16, 48}),
                        .bias = sizes.one_of({false, true}),
                        .head_dim = sizes.one_of<int64_t>({0, 6}),
                        .hidden = sizes.one_of<int64_t>({0, 20})};
    case 1: return random_llama(sizes);
    default:
      return RecurrentLmConfig{.cell = sizes.one_of({Cell::rnn, Cell::gru, Cell::lstm}),
                               .vocab = sizes.one_of<int64_t>({17, 64}),
                               .layers = sizes.one_of<int64_t>({1, 3}),
                               .width = sizes.one_of<int64_t>({8, 24}),
                               .tied = sizes.one_of({false, true})};
  }
}

// The closed formula is what makes searches quick: it must be the model that is made.
TEST(ModelLimits, CountByFormulaIsThatOfTheModel) {
  const ParameterScope on_paper({.device = Device::null()});
  Sizes sizes;
  for (int i = 0; i < 300; ++i) {
    const ModelConfig config = random_model(sizes);
    plan::check_model(config);
    Random random(1);
    EXPECT_EQ(plan::parameters_of(config),
              static_cast<double>(make_model(config, random)->parameter_count()))
        << to_json(config);
  }
}

TEST(ModelLimits, CountWithoutOverflowIsTheCount) {
  for (std::string_view name : model_presets()) {
    const ModelConfig config = model_preset(name);
    EXPECT_EQ(plan::parameters_of(config), static_cast<double>(parameter_count(config))) << name;
    plan::check_model(config);
    plan::check_micro_batch(config, 1, std::min<int64_t>(context_of(config), 2048));
  }
}

TEST(ModelLimits, RefuseWhatOverflows) {
  const auto refused = [](const plan::ShapeOptions& shape) {
    return error_of([&] { plan::find_model("llama3-8b", shape); });
  };
  EXPECT_THAT(refused({.layers = 10'000, .hidden = 100'000'000}),
              HasSubstr("parameters is beyond reason; 1e+16 at most"));
  EXPECT_THAT(refused({.layers = 100, .hidden = 100'000'000}), HasSubstr("beyond reason"));
  EXPECT_THAT(refused({.ffn = 9'000'000'000'000}), HasSubstr("--ffn 9000000000000"));
  EXPECT_THAT(refused({.experts = 100'000'000}), HasSubstr("beyond reason"));
  const ModelConfig config = model_preset("llama3-8b");
  const auto micro_batch = [&](int64_t batch, int64_t seq) {
    return error_of([&] { plan::check_micro_batch(config, batch, seq); });
  };
  EXPECT_EQ(micro_batch(1, 1 << 24), kNoError);
  EXPECT_THAT(micro_batch(1, 100'000'000), HasSubstr("counted exactly up to"));
  EXPECT_THAT(micro_batch(1'000'000'000, 8192), HasSubstr("use 1e+09 at most"));
  EXPECT_THAT(micro_batch(std::numeric_limits<int64_t>::max(), 100'000'000),
              HasSubstr("use 1e+09 at most"));
  EXPECT_THAT(micro_batch(0, 8192), HasSubstr("is empty"));
  EXPECT_THAT(error_of([] { plan::check_micro_batch(model_preset("lstm-tiny"), 1, 4096); }),
              HasSubstr("token by token"));
}

// The largest model and the longest sequence that are taken have FLOPs that do not wrap round: 6 N at least.
TEST(ModelLimits, WhatIsTakenIsCountedExactly) {
  const plan::NamedModel wide = plan::find_model("llama3-8b", {.layers = 2, .ffn = 90'000'000});
  const plan::CostOptions options{.seq = 1024};
  const hardware::Rates rates =
      plan::gpu_rates(hardware::find_gpu("h100"), compiler::Precision::bf16_mixed);
  const plan::StepCost cost = plan::model_cost(wide.config, options, rates).total();
  const double products = plan::parameters_of(wide.config) - cost.embedding - cost.vectors;
  EXPECT_NEAR(cost.products, 2 * products * 1024, 1e-6 * cost.products);
}

TEST(ModelSource, SizesThatAreGivenCount) {
  struct Row {
    const char* model;
    plan::ShapeOptions shape;
    const char* rule;
  };
  const Row rows[] = {
      {"llama3-8b", {.kv_heads = 0}, "--kv-heads 0 makes no sense"},
      {"llama3-8b", {.head_dim = 0}, "--head-dim 0 makes no sense"},
      {"llama3-8b", {.ffn = 0}, "--ffn 0 makes no sense"},
      {"mixtral-8x7b", {.experts = 0}, "--experts 0 makes no sense"},
      {"llama3-8b", {.layers = 10'001}, "use 1 to 10000"},
      {"llama3-8b", {.family = "gpt3"}, "--family gpt3: llama3-8b is of family llama"},
      {"llama3-8b", {.family = "gpt2"}, "--family gpt2: llama3-8b is of family llama"},
      {"llama3-8b", {.top_k = 2}, "no experts to choose from"},
      {"mixtral-8x7b", {.top_k = 9}, "cannot choose 9 of 8"},
      {"deepseek-v3", {.kv_heads = 8}, "latent attention"},
      {"deepseek-v3", {.qkv_bias = true}, "latent attention"},
      {"deepseek-v3", {.layers = 2}, "3 first layers without experts"},
      {"gpt2-124m", {.kv_heads = 4}, "as many key heads as heads"},
      {"lstm-tiny", {.top_k = 2}, "neither heads, ffn nor experts"},
      {"",
       {.family = "llama", .layers = 2, .hidden = 1'000'000'000'000'000'000, .heads = 2},
       "--hidden 1000000000000000000 makes no sense"}};
  for (const Row& row : rows)
    EXPECT_THAT(error_of([&] { plan::find_model(row.model, row.shape); }), HasSubstr(row.rule));
  const auto tied = plan::find_model("lstm-tiny", {.tied = true}).config;
  EXPECT_TRUE(tied.get<RecurrentLmConfig>().tied) << "a flag does what it says";
  EXPECT_EQ(plan::find_model("llama3-8b", {.family = "llama"}).config, model_preset("llama3-8b"));
}

TEST(ModelSource, TomlFilesAreHeldAgainstTheSameRules) {
  const TempFolder folder;
  const auto refusal = [&](const char* text) {
    return error_of([&] { plan::find_model(folder.write("m.toml", text).string()); });
  };
  const std::pair<const char*, const char*> rows[] = {
      {"preset = 5\nfamily = \"gpt2\"\n", "preset is no text"},
      {"preset = \"llama3-8b\"\nfamily = \"gpt3\"\n", "family is \"gpt3\""},
      {"preset = \"llama3-8b\"\nhead_dim = -1\n", "a head of -1"},
      {"preset = \"llama3-8b\"\nhead_dim = 1000000000000000000\n", "a head of 1000000000000000000"},
      {"preset = \"llama3-8b\"\nhidden = 0\n", "an ffn of 0"},
      {"preset = \"llama3-8b\"\ncontext = 0\n", "a context of 0"},
      {"preset = \"llama3-8b\"\nq_rank = 8\n", "give kv_rank as well"},
      {"preset = \"llama3-8b\"\ndense_layers = 8\n", "give experts as well"},
      {"preset = \"deepseek-v3\"\ndense_layers = -1\n", "-1 first layers"},
      {"preset = \"deepseek-v3\"\nkv_rank = -1\n", "a kv_rank of -1"},
      {"preset = \"deepseek-v3\"\nshared_expert_hidden = -1\n", "hidden units of shared experts"}};
  for (const auto& [text, rule] : rows) EXPECT_THAT(refusal(text), HasSubstr(rule)) << text;
  EXPECT_EQ(refusal("preset = \"llama3-8b\"\nfamily = \"llama\"\n"), kNoError);
}

TEST(TensorShard, TakesWholeKeyHeadsOrCopiesOfThem) {
  LlamaConfig config{
      .layers = 2, .width = 512, .heads = 40, .kv_heads = 10, .head_dim = 16, .hidden = 1024};
  EXPECT_THAT(error_of([&] { plan::tensor_shard(config, 4); }),
              HasSubstr("4 neither divides 10 key heads nor is a multiple"));
  EXPECT_FALSE(plan::splits_by(config, 4));
  EXPECT_TRUE(plan::splits_by(config, 2));
  config.kv_heads = 2;
  EXPECT_TRUE(plan::splits_by(config, 4));
  EXPECT_EQ(plan::tensor_shard(config, 4).get<LlamaConfig>().kv_heads, 1);
  config.experts = 4, config.expert_hidden = 64, config.shared_expert_hidden = 66;
  EXPECT_THAT(error_of([&] { plan::tensor_shard(config, 4); }),
              HasSubstr("66 hidden units of shared"));
}

}  // namespace
}  // namespace brrr
