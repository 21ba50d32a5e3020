// The registry of families, and files that were written before there was one.
#include "brrr/nn/model_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "brrr/nn/families/gemma2.h"
#include "brrr/nn/families/qwen3.h"
#include "brrr/nn/models.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::HasSubstr;

nlohmann::json saved(const char* name) {
  std::ifstream file(std::string(BRRR_SOURCE_DIR) + "/tests/fixtures/" + name);
  return nlohmann::json::parse(file);
}

TEST(ModelFamily, NamesAreTakenOnce) {
  std::set<std::string_view> names, presets, types;
  for (const ModelFamily* family : model_families()) {
    EXPECT_TRUE(names.insert(family->name).second) << family->name;
    EXPECT_EQ(&find_family(family->name), family);
    EXPECT_EQ(family->defaults().family().name, family->name);
    for (const ModelPreset& preset : family->presets()) {
      EXPECT_EQ(&preset.config.family(), family) << preset.name;
      EXPECT_TRUE(presets.insert(preset.name).second) << preset.name;
    }
    for (const HuggingFaceType& type : family->huggingface.types)
      EXPECT_TRUE(types.insert(type.type).second) << type.type;
  }
  EXPECT_EQ(error_of([] { find_family("t5"); }),
            "there is no family \"t5\"; use gpt2, llama, qwen3, gemma2 or recurrent");
  EXPECT_EQ(error_of([] { register_family(LlamaConfig::family()); }),
            "there is a family \"llama\" already; choose another name");
}

// The model.json of every preset as they were written before families had a registry: read, and written again to the
// byte, with the same counts.
TEST(ModelFamily, SavedModelsAreReadAndWrittenAsBefore) {
  const nlohmann::json models = saved("saved_models.json");
  ASSERT_EQ(models.size(), 30u);
  for (const nlohmann::json& model : models) {
    const auto name = model.at("name").get<std::string>(),
               text = model.at("model.json").get<std::string>();
    const ModelConfig config = model_from_json(text);
    EXPECT_EQ(to_json(config), text) << name;
    EXPECT_EQ(config, model_preset(name)) << name;
    EXPECT_EQ(parameter_count(config), model.at("parameters").get<int64_t>()) << name;
    EXPECT_EQ(active_parameter_count(config), model.at("active_parameters").get<int64_t>()) << name;
  }
  // A model of Qwen3 that was saved as a Llama stays one.
  const ModelConfig old = model_from_json(R"({"family": "llama", "qk_norm": true})");
  EXPECT_EQ(old, ModelConfig(LlamaConfig{.qk_norm = true}));
}

TEST(ModelConfig, FieldsAreReadAndSetByName) {
  ModelConfig config = Gemma2Config{};
  EXPECT_TRUE(config.has("window"));
  EXPECT_FALSE(config.has("experts"));
  EXPECT_EQ(config.size("layers"), 26);
  EXPECT_EQ(config.size("experts"), 0);
  config.set("layers", int64_t{4});
  config.set("score_cap", 20.0);
  EXPECT_EQ(config.get<Gemma2Config>(), (Gemma2Config{.layers = 4, .score_cap = 20}));
  EXPECT_FALSE(config.set_if_there("experts", int64_t{8}));
  EXPECT_EQ(error_of([&] { config.set("experts", int64_t{8}); }),
            "a model of family gemma2 has no setting \"experts\"");
  EXPECT_EQ(error_of([&] { config.get<LlamaConfig>(); }),
            "the model is of family gemma2, not llama");
  EXPECT_EQ(config.get_if<LlamaConfig>(), nullptr);
  EXPECT_NE(config, ModelConfig(Gemma2Config{}));
  EXPECT_NE(ModelConfig(Qwen3Config{}), ModelConfig(LlamaConfig{}));
}

TEST(ModelConfig, ChoicesAreWordsInJson) {
  const ModelConfig config = Qwen3Config{.rope_stretch = RopeStretch::linear};
  EXPECT_THAT(to_json(config), HasSubstr(R"("rope_stretch":"linear")"));
  EXPECT_EQ(model_from_json(to_json(config)), config);
  EXPECT_EQ(error_of([] { model_from_json(R"({"family": "recurrent", "cell": "mamba"})"); }),
            "model: cell is mamba; use one of rnn, gru, lstm");
}

// A Qwen3 is the Llama of its settings: as many parameters, the same names.
TEST(ModelFamily, Qwen3IsALlamaWithNormsOfQueriesAndKeys) {
  Random random(1), same(1);
  const ModelConfig config = model_preset("qwen3-tiny");
  const auto qwen3 = make_model(config, random);
  const Llama llama(config.get<Qwen3Config>().as_llama(), same);
  EXPECT_EQ(qwen3->family(), "qwen3");
  const auto a = qwen3->named_parameters(), b = llama.named_parameters();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].tensor.to_vector<float>(), b[i].tensor.to_vector<float>()) << a[i].name;
  }
}

}  // namespace
}  // namespace brrr
