// Models from folders: of our own, of others, and of nobody who meant well.
#include "brrr/infer/load_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "brrr/infer/huggingface.h"
#include "brrr/io/safetensors.h"
#include "brrr/nn/families/qwen3.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/view/views.h"
#include "fixtures/fixture.h"
#include "support/counter_values.h"
#include "support/error_of.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"
#include "support/write_checkpoint.h"

namespace brrr {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::HasSubstr;

const LlamaConfig kLlama{
    .vocab = 257, .context = 16, .layers = 2, .width = 16, .heads = 2, .kv_heads = 1, .hidden = 24};

std::unique_ptr<LanguageModel> filled_model(const ModelConfig& config) {
  Random random(1);
  auto model = make_model(config, random);
  for (const NamedTensor& parameter : model->named_parameters()) fill_by_name(parameter);
  return model;
}

// `mark` tells its weights from others.
fs::path write_marked(const fs::path& run, const std::string& name, double mark) {
  const auto model = filled_model(kLlama);
  {
    NoGrad writing;
    model->parameters()[0].fill(mark);
  }
  return write_checkpoint(run, name, *model, kLlama);
}

double mark_of(const infer::LoadedModel& loaded) {
  return loaded.model->parameters()[0].to_vector<double>()[0];
}

TEST(LoadModel, CheckpointsComeBackBitForBit) {
  const TempFolder folder;
  const fs::path checkpoint = write_marked(folder.path(), "step-00000007", 0.25);
  const infer::LoadedModel loaded = infer::load_model(checkpoint);
  EXPECT_EQ(loaded.config.get<LlamaConfig>(), kLlama);
  ASSERT_TRUE(loaded.tokenizer);
  EXPECT_EQ(loaded.tokenizer->vocab_size(), 257);
  EXPECT_EQ(loaded.source, checkpoint);
  const auto expected = filled_model(kLlama);
  const auto ours = loaded.model->named_parameters(), theirs = expected->named_parameters();
  for (size_t i = 1; i < ours.size(); ++i)
    EXPECT_EQ(ours[i].tensor.to_vector<float>(), theirs[i].tensor.to_vector<float>());
}

TEST(LoadModel, ARunIsItsBestCheckpointElseItsNewest) {
  const TempFolder run;
  write_marked(run.path(), "step-00000100", 1);
  write_marked(run.path(), "step-00000200", 2);
  write_marked(run.path(), "step-100000000", 3);  // more digits: by number, not by letters
  fs::create_directories(run / "checkpoints/step-00000300.partial");
  EXPECT_EQ(mark_of(infer::load_model(run.path())), 3);
  write_text(run / "checkpoints/best", "step-00000200\n");
  EXPECT_EQ(mark_of(infer::load_model(run.path().string() + "/")), 2);
  write_text(run / "checkpoints/best", "../../elsewhere\n");
  EXPECT_THAT(error_of([&] { infer::load_model(run.path()); }),
              HasSubstr("no checkpoint of the run"));
}

TEST(LoadModel, ADamagedCheckpointIsNamedAndTheOneBeforeItOffered) {
  const TempFolder run;
  const fs::path first = write_marked(run.path(), "step-00000001", 1),
                 second = write_marked(run.path(), "step-00000002", 2),
                 third = write_marked(run.path(), "step-00000003", 3);
  std::string bytes = read_file(third / "model.safetensors");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  write_text(third / "model.safetensors", bytes);
  const std::string flipped = error_of([&] { infer::load_model(run.path()); });
  EXPECT_THAT(flipped, HasSubstr("step-00000003/model.safetensors is damaged"));
  EXPECT_THAT(flipped, HasSubstr(second.string()));
  fs::resize_file(second / "model.json", 10);
  EXPECT_THAT(error_of([&] { infer::load_model(third); }), HasSubstr(first.string()));
  fs::remove(first / "manifest.json");
  EXPECT_THAT(error_of([&] { infer::load_model(first); }), HasSubstr("no whole one before it"));
}

TEST(LoadModel, SaysWhatAFolderLacks) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { infer::load_model(folder / "nothing"); }), HasSubstr("no such file"));
  EXPECT_THAT(error_of([&] { infer::load_model(folder.write("file", "x")); }),
              HasSubstr("is a folder"));
  EXPECT_THAT(error_of([&] { infer::load_model(folder.path()); }),
              HasSubstr("neither checkpoints, model.json nor config.json"));
  fs::create_directories(folder / "checkpoints");
  EXPECT_THAT(error_of([&] { infer::load_model(folder.path()); }), HasSubstr("no checkpoint yet"));
}

TEST(LoadModel, ATokenizerOfAnotherModelIsRefused) {
  const TempFolder run;
  write_marked(run.path(), "step-00000001", 1);
  const auto large = text::make_tokenizer(
      text::define_char_tokenizer("\u03b1\u03b2\u03b3", text::UnknownCharacters::as_bytes));
  text::save_tokenizer(*large, (run / "other.json").string());
  EXPECT_THAT(error_of([&] {
                infer::load_model(run.path(), {.tokenizer = (run / "other.json").string()});
              }),
              HasSubstr("has 259 ids and the model knows 257"));
  EXPECT_EQ(infer::load_model(run.path()).tokenizer->vocab_size(), 257);
}

// ---- Hugging Face ------------------------------------------------------------------------------------

Json llama_json(const LlamaConfig& c) {
  return {{"model_type", "llama"},
          {"vocab_size", c.vocab},
          {"max_position_embeddings", c.context},
          {"num_hidden_layers", c.layers},
          {"hidden_size", c.width},
          {"num_attention_heads", c.heads},
          {"num_key_value_heads", c.kv_heads},
          {"intermediate_size", c.hidden},
          {"rms_norm_eps", c.norm_eps},
          {"hidden_act", "silu"},
          {"tie_word_embeddings", c.tied},
          {"rope_scaling", nullptr}};
}

// In two files with an index, bf16 in one of them, and with tables that are no parameters.
TEST(LoadModel, LlamaFoldersOfHuggingFaceInShards) {
  const TempFolder folder;
  const auto model = filled_model(kLlama);
  std::vector<NamedTensor> first, second;
  Json map;
  for (const NamedTensor& parameter : model->named_parameters()) {
    const bool low = parameter.name.find("layers.1") != std::string::npos;
    NoGrad copying;
    (low ? second : first)
        .push_back({parameter.name, low ? cast(parameter.tensor, DType::bf16) : parameter.tensor});
    map[parameter.name] = low ? "model-2.safetensors" : "model-1.safetensors";
  }
  second.push_back({"model.layers.1.self_attn.rotary_emb.inv_freq", zeros({4})});
  save_safetensors(folder / "model-1.safetensors", first);
  save_safetensors(folder / "model-2.safetensors", second);
  write_text(folder / "model.safetensors.index.json", Json{{"weight_map", map}}.dump());
  write_text(folder / "config.json", llama_json(kLlama).dump());
  const infer::LoadedModel loaded = infer::load_model(folder.path());
  EXPECT_EQ(loaded.config.get<LlamaConfig>(), kLlama);
  EXPECT_FALSE(loaded.tokenizer) << "there is none in the folder";
  const auto ours = loaded.model->named_parameters(), theirs = model->named_parameters();
  for (size_t i = 0; i < ours.size(); ++i) {
    const auto a = ours[i].tensor.to_vector<float>(), b = theirs[i].tensor.to_vector<float>();
    for (size_t k = 0; k < a.size(); ++k)
      ASSERT_NEAR(a[k], b[k], 0.005 * std::fabs(b[k]) + 1e-9) << ours[i].name;
  }
}

TEST(LoadModel, RelativesOfLlamaAreTold) {
  Json json = llama_json(kLlama);
  json["model_type"] = "qwen2";
  json["use_sliding_window"] = false;
  json["rope_theta"] = 1e6;
  const auto qwen2 = infer::config_from_huggingface(json.dump()).get<LlamaConfig>();
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_EQ(qwen2.rope_base, 1e6);
  json["model_type"] = "qwen3";
  json["head_dim"] = 12;
  const auto qwen3 = infer::config_from_huggingface(json.dump()).get<Qwen3Config>();
  EXPECT_EQ(qwen3.head_dim, 12);
  json["model_type"] = "mistral";
  json["sliding_window"] = 7;
  EXPECT_EQ(infer::config_from_huggingface(json.dump()).get<LlamaConfig>().window, 7);
}

TEST(LoadModel, RefusesWhatItWouldComputeOtherwise) {
  const auto message = [](const char* key, const Json& value) {
    Json json = llama_json(kLlama);
    json[key] = value;
    return error_of([&] { infer::config_from_huggingface(json.dump()); });
  };
  EXPECT_THAT(message("model_type", "mamba"), HasSubstr("mamba is not supported"));
  EXPECT_THAT(message("hidden_act", "gelu"), HasSubstr("hidden_act is \"gelu\""));
  EXPECT_THAT(message("attention_bias", true), HasSubstr("attention_bias is true"));
  EXPECT_THAT(message("rope_scaling", Json{{"rope_type", "yarn"}}),
              HasSubstr("rope_scaling of type yarn is not supported; default, linear and llama3"));
  EXPECT_THAT(message("rope_scaling", Json{{"rope_type", "llama3"}}),
              HasSubstr("factor is missing; it must be a number above 0"));
  EXPECT_THAT(message("hidden_size", "wide"),
              HasSubstr("hidden_size is \"wide\"; it must be a whole number"));
  EXPECT_THAT(error_of([] { infer::config_from_huggingface("[]"); }), HasSubstr("JSON object"));
}

// The weights of a folder under the names of transformers, as tests/fixtures/make_huggingface_fixtures.py
// makes them.
std::vector<NamedTensor> named_by_others(const LlamaConfig& config) {
  std::vector<NamedTensor> weights;
  const auto add = [&](const std::string& name, const Shape& shape) {
    weights.push_back({name, zeros(shape)});
    fill_by_name(weights.back());
  };
  Random random(1);
  for (const auto& [name, x] : make_model(config, random)->named_parameters()) {
    const size_t part = name.find("mlp.");
    if (config.experts == 0 || part == std::string::npos) {
      add(name, x.shape());
      continue;
    }
    const std::string mixture = name.substr(0, part) + "block_sparse_moe.";
    if (name.ends_with("router.weight")) {
      add(mixture + "gate.weight", x.shape());
      continue;
    }
    const char* kind = name.ends_with("gate_proj") ? "w1" : name.ends_with("up_proj") ? "w3" : "w2";
    for (int64_t expert = 0; expert < config.experts; ++expert)
      add(join_text(mixture, "experts.", expert, ".", kind, ".weight"), {x.dim(1), x.dim(2)});
  }
  return weights;
}

TEST(LoadModel, FoldersHaveTheLogitsOfTransformers) {
  const Json cases = fixture::load("huggingface").at("cases");
  for (const Json& test : cases) {
    SCOPED_TRACE(test.at("name").get<std::string>());
    const TempFolder folder;
    const std::string json = test.at("config").dump();
    write_text(folder / "config.json", json);
    save_safetensors(folder / "model.safetensors",
                     named_by_others(infer::config_from_huggingface(json).get<LlamaConfig>()));
    const infer::LoadedModel loaded = infer::load_model(folder.path());
    const Tensor logits = loaded.model->logits(token_batch(0, 2, 200, 64).tokens);
    // f32 on both sides, angles of 200 positions in f32 on theirs.
    EXPECT_TRUE(fixture::near(slice(select(logits, 1, 199), 1, {0, 64, 7}), test.at("logits"),
                              {2e-4, 2e-4}));
  }
}

TEST(LoadModel, ExpertsThatAreMissingAreNamed) {
  const TempFolder folder;
  const Json cases = fixture::load("huggingface").at("cases");
  const std::string json = cases.back().at("config").dump();
  write_text(folder / "config.json", json);
  auto weights = named_by_others(infer::config_from_huggingface(json).get<LlamaConfig>());
  std::erase_if(weights, [](const NamedTensor& each) {
    return each.name == "model.layers.1.block_sparse_moe.experts.2.w3.weight";
  });
  save_safetensors(folder / "model.safetensors", weights);
  EXPECT_THAT(error_of([&] { infer::load_model(folder.path()); }),
              HasSubstr("model.layers.1.mlp.up_proj: the weights of expert 2 are missing"));
}

// Llama 3.1's frequencies, by the formula of its reference code, and the table of its paper's settings.
TEST(LoadModel, StretchedFrequenciesFollowTheirFormula) {
  const RopeScaling llama31{.kind = RopeStretch::llama3, .factor = 8};
  const std::vector<double> plain = scaled_frequencies(500000, 64, {}),
                            stretched = scaled_frequencies(500000, 64, llama31);
  for (size_t i = 0; i < plain.size(); ++i) {
    const double wave = 2 * M_PI / plain[i], smooth = (8192 / wave - 1) / (4 - 1);
    const double expected = wave < 8192 / 4.0 ? plain[i]
                            : wave > 8192.0   ? plain[i] / 8
                                              : (1 - smooth) * plain[i] / 8 + smooth * plain[i];
    EXPECT_NEAR(stretched[i], expected, 1e-12 * expected) << i;
  }
  EXPECT_EQ(stretched.front(), plain.front());
  EXPECT_EQ(stretched.back(), plain.back() / 8);
  const std::vector<double> linear =
      scaled_frequencies(10000, 4, {.kind = RopeStretch::linear, .factor = 4});
  EXPECT_EQ(linear[0], 0.25);
}

TEST(LoadModel, Gpt2OfHuggingFaceHasTheLogitsOfOnnxRuntime) {
  const auto weights = shared_data("ckpt/gpt2-tiny-random/model.safetensors"),
             input = shared_data("ref/gpt2_tiny_ort/input_ids.json"),
             expected = shared_data("ref/gpt2_tiny_ort/logits.f32");
  if (!weights || !input || !expected) GTEST_SKIP() << "no gpt2-tiny-random";
  const infer::LoadedModel loaded =
      infer::load_model(std::filesystem::path(*weights).parent_path());
  const Json ids = Json::parse(read_file(*input));
  const Tensor tokens = from_values(ids.at("input_ids").get<std::vector<int64_t>>(), {2, 24});
  const std::vector<float> logits = loaded.model->logits(tokens).to_vector<float>();
  const std::string bytes = read_file(*expected);
  std::vector<float> theirs(logits.size());
  ASSERT_EQ(bytes.size(), theirs.size() * sizeof(float));
  std::memcpy(theirs.data(), bytes.data(), bytes.size());
  double largest = 0;
  for (float value : theirs) largest = std::max(largest, std::fabs(double{value}));
  for (size_t i = 0; i < theirs.size(); ++i) ASSERT_NEAR(logits[i], theirs[i], 1e-5 * largest) << i;
}

}  // namespace
}  // namespace brrr
