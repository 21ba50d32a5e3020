// Qwen3 and Gemma 2 against transformers (tests/fixtures/families.json): folders of theirs give their logits, their
// loss and their gradients; and config.json goes both ways for every family that has a class there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "brrr/autodiff/grad.h"
#include "brrr/infer/huggingface.h"
#include "brrr/infer/load_model.h"
#include "brrr/io/safetensors.h"
#include "brrr/nn/families/gemma2.h"
#include "brrr/nn/families/qwen3.h"
#include "brrr/ops/view/views.h"
#include "fixtures/fixture.h"
#include "support/counter_values.h"
#include "support/error_of.h"
#include "support/temp_folder.h"
#include "support/write_checkpoint.h"

namespace brrr {
namespace {

using fixture::Json;
using testing::HasSubstr;

// f32 on both sides, sums in another order: over 4 layers of 32 elements the logits differ in the last three bits.
constexpr double kLogits = 1e-5, kGradients = 2e-5;

infer::LoadedModel load_case(const TempFolder& folder, const Json& test) {
  write_text(folder / "config.json", test.at("config").dump());
  Random random(1);
  const auto made = make_model(infer::config_from_huggingface(test.at("config").dump()), random);
  std::vector<NamedTensor> weights = made->named_parameters();
  for (const NamedTensor& each : weights) fill_by_name(each);
  save_safetensors(folder / "model.safetensors", weights);
  return infer::load_model(folder.path());
}

TEST(FamilyParity, FoldersHaveTheLogitsLossesAndGradientsOfTransformers) {
  const Json families = fixture::load("families");
  for (const Json& test : families.at("cases")) {
    SCOPED_TRACE(test.at("name").get<std::string>());
    const TempFolder folder;
    const infer::LoadedModel loaded = load_case(folder, test);
    EXPECT_EQ(family_of(loaded.config), test.at("config").at("model_type").get<std::string>());
    EXPECT_EQ(loaded.model->parameter_count(), test.at("parameters").get<int64_t>());
    EXPECT_EQ(parameter_count(loaded.config), test.at("parameters").get<int64_t>());
    const TokenBatch batch = token_batch(0, 2, 40, 64);
    const Tensor logits = loaded.model->logits(batch.tokens);
    EXPECT_TRUE(fixture::near(slice(select(logits, 1, 39), 1, {0, 64, 7}), test.at("logits"),
                              {kLogits, kLogits}));
    const Tensor loss = loaded.model->loss(batch.tokens, batch.targets);
    EXPECT_NEAR(loss.item<double>(), test.at("loss").get<double>(), kLogits);
    const std::vector<NamedTensor> parameters = loaded.model->named_parameters();
    const std::vector<Tensor> grads = grad(loss, loaded.model->parameters());
    ASSERT_EQ(grads.size(), test.at("gradients").size());
    for (size_t i = 0; i < grads.size(); ++i) {
      const std::string& name = parameters[i].name;
      ASSERT_TRUE(test.at("gradients").contains(name)) << name;
      EXPECT_LT(relative_distance({name, grads[i]}, test.at("gradients").at(name)), kGradients)
          << name;
    }
  }
}

TEST(FamilyParity, ConfigurationsGoThroughConfigJson) {
  int written = 0;
  for (std::string_view name : model_presets()) {
    const ModelConfig config = model_preset(name);
    if (name == "deepseek-v3" || name == "llama-mla-tiny" || !config.family().huggingface.write) {
      EXPECT_NE(error_of([&] { infer::config_to_huggingface(config); }), "no error") << name;
      continue;
    }
    const ModelConfig back = infer::config_from_huggingface(infer::config_to_huggingface(config));
    EXPECT_EQ(family_of(back), family_of(config)) << name;
    EXPECT_EQ(parameter_count(back), parameter_count(config)) << name;
    // Again it is the same to the field: what was left to a default is a number now.
    EXPECT_EQ(infer::config_from_huggingface(infer::config_to_huggingface(back)), back) << name;
    ++written;
  }
  EXPECT_GT(written, 25);
  for (std::string_view name : {"qwen3-8b", "gemma-2-27b", "gpt2-124m"})
    EXPECT_EQ(infer::config_from_huggingface(infer::config_to_huggingface(model_preset(name))),
              model_preset(name));
  Gemma2Config without_bounds{.score_cap = 0, .logit_cap = 0};
  EXPECT_EQ(infer::config_from_huggingface(infer::config_to_huggingface(without_bounds)),
            ModelConfig(without_bounds));
  EXPECT_EQ(error_of([] { infer::config_to_huggingface(model_preset("lstm-tiny")); }),
            "transformers has no class for models of family recurrent");
}

TEST(FamilyParity, UnknownTypesAreToldWhichAreKnown) {
  EXPECT_EQ(error_of([] { infer::config_from_huggingface(R"({"model_type": "mamba"})"); }),
            "config.json: model_type mamba is not supported; gpt2, llama, mistral, mixtral, qwen2, "
            "qwen3 and gemma2 are");
  EXPECT_THAT(error_of([] { infer::shape_from_huggingface(R"({"model_type": "mamba"})"); }),
              HasSubstr("is not known; gpt2, llama, mistral, mixtral, qwen2, smollm3, "
                        "deepseek_v2, deepseek_v3, qwen3 and gemma2 are"));
}

// The loss bounds logits as the head does; a second bound would be another model.
TEST(FamilyParity, ModelsThatBoundTheirLogitsTakeNoSecondBound) {
  Random random(1);
  const auto model = make_model(model_preset("gemma-2-tiny"), random);
  const TokenBatch batch = token_batch(0, 1, 8, 256);
  EXPECT_EQ(error_of([&] { model->loss(batch.tokens, batch.targets, {}, {.soft_cap = 5}); }),
            "gemma2: the model bounds its logits itself, by 30; leave soft_cap out");
}

}  // namespace
}  // namespace brrr
