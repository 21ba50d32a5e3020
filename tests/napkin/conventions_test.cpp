// Counts of FLOPs by convention, models from files, sizes that waste a device, and the ladder.
#include "brrr/napkin/conventions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/napkin/gpu_rates.h"
#include "brrr/napkin/ladder.h"
#include "brrr/napkin/ladder_kernels.h"
#include "brrr/napkin/lint.h"
#include "brrr/napkin/model_source.h"
#include "brrr/napkin/model_step.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/matmul.h"
#include "brrr/ops/random.h"
#include "support/error_of.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using testing::HasSubstr;

FlopFacts facts_of(const ModelConfig& config, int64_t seq) {
  const Rates rates = gpu_rates(find_gpu("h100"), Precision::bf16_mixed);
  return flop_facts(config, model_cost(config, {.seq = seq}, rates).total(), seq);
}

TEST(Conventions, NanoGptsCountIsThePublishedOne) {
  Gpt2Config config = gpt2_preset("gpt2-124m");
  config.bias = false;
  const FlopFacts facts = facts_of(config, 1024);
  EXPECT_NEAR(1024 * flops_per_token(Convention::nanogpt, facts), 875'062'886'400.0, 1);
}

// 72 B s L h^2 (1 + s/6h + V/12Lh), and 96 (...) with full recomputation (Narayanan et al. 2021).
TEST(Conventions, MegatronsCountIsItsFormula) {
  const double h = 2304, L = 24, s = 2048, V = 51200;
  const FlopFacts facts = facts_of(
      Gpt2Config{.vocab = 51200, .context = 2048, .layers = 24, .heads = 24, .width = 2304}, 2048);
  const double model = 72 * L * h * h * (1 + s / (6 * h) + V / (12 * L * h));
  EXPECT_NEAR(flops_per_token(Convention::megatron, facts), model, 1e-9 * model);
  const double with_again = 96 * L * h * h * (1 + s / (6 * h) + V / (16 * L * h));
  EXPECT_NEAR(
      flops_per_token(Convention::megatron, facts) + recomputed_per_token(facts, RematPolicy::full),
      with_again, 1e-9 * with_again);
}

TEST(Conventions, DifferByWhatTheyCount) {
  const FlopFacts facts = facts_of(model_preset("llama3-8b"), 8192);
  const double palm = flops_per_token(Convention::palm, facts),
               titan = flops_per_token(Convention::torchtitan, facts);
  EXPECT_NEAR(palm - titan, 6 * 128256.0 * 4096, 1) << "the input table";
  EXPECT_NEAR(palm - flops_per_token(Convention::six_n, facts), 12.0 * 32 * 4096 * 8192, 1);
  EXPECT_LT(flops_per_token(Convention::exact, facts), titan) << "half of the square";
  EXPECT_THAT(error_of([] { parse_convention("7n"); }), HasSubstr("megatron"));
}

// 2 N a sample holds where every weight multiplies once: a convolution uses its weights at every place.
TEST(Conventions, SixNFailsForConvolutions) {
  const ModelStep step("cnn", {.batch = 1, .device = Device::null()});
  const Graph forward = step.trace_forward();
  double flops = 0;
  for (const Node& node : forward.nodes) {
    if (node.op->kind == OpKind::contraction)
      flops += static_cast<double>(cost_of(forward, node).flops);
  }
  EXPECT_GT(flops, 5 * 2 * static_cast<double>(step.parameter_count()));
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
    return parameter_count(find_model(folder.write("config.json", text).string()).config);
  };
  EXPECT_EQ(count(kMixtral), 46'702'792'704);
  EXPECT_EQ(count(kLlama31), 405'853'388'800);
  EXPECT_EQ(count(kDeepSeek), parameter_count(model_preset("deepseek-v3")));
}

TEST(ModelSource, TomlFilesChangeAPresetOrGiveAFamily) {
  const TempFolder folder;
  const auto read = [&](const char* text) {
    return find_model(folder.write("m.toml", text).string()).config;
  };
  EXPECT_EQ(std::get<LlamaConfig>(read("[model]\npreset = \"llama3-8b\"\nlayers = 16\n")).layers,
            16);
  EXPECT_EQ(parameter_count(read("[model]\nfamily = \"gpt2\"\n")), 124'439'808);
  EXPECT_THAT(error_of([&] { read("[model]\nfamily = \"gpt2\"\ncolour = 1\n"); }),
              HasSubstr("colour"));
}

TEST(ModelSource, FreeShapesAndRefusals) {
  ShapeOptions shape{.family = "llama", .layers = 32, .hidden = 4096, .heads = 32, .ffn = 11008};
  EXPECT_EQ(parameter_count(find_model("", shape).config), 6'738'415'616);
  shape.heads = 33;
  EXPECT_THAT(error_of([&] { find_model("", shape); }), HasSubstr("33 heads do not divide"));
  shape.heads = 32, shape.layers = -1;
  EXPECT_THAT(error_of([&] { find_model("", shape); }), HasSubstr("-1 layers"));
  EXPECT_THAT(error_of([] { find_model("llama3-9b"); }), HasSubstr("did you mean"));
  EXPECT_THAT(error_of([] { find_model(""); }), HasSubstr("--family"));
}

TEST(Lint, FindsTheVocabularyOfGpt2) {
  const std::vector<LintFinding> findings = lint(model_preset("gpt2-124m"), find_gpu("h100"));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].what, "vocabulary 50257");
  EXPECT_EQ(findings[0].change, "pad to 50304; `brrr train` does, inside its step");
  EXPECT_GT(findings[0].gain, 0.05);
  EXPECT_EQ(whole_tiles_of_vocab(50257), 50304);
  EXPECT_EQ(whole_tiles_of_vocab(50304), 50304);
  for (const LintFinding& f : lint(model_preset("llama3-8b"), find_gpu("h100")))
    EXPECT_EQ(f.what.find("vocabulary"), std::string::npos) << f.what;
}

TEST(Ladder, EveryRungComputesTheProduct) {
  constexpr int64_t n = 96;
  const Tensor a = uniform({n, n}, RandomKey{.seed = 1}), b = uniform({n, n}, RandomKey{.seed = 2});
  const std::vector<float> expected = matmul(a, b).to_vector<float>();
  using Kernel = void (*)(const ladder::Matrices&);
  std::vector<Kernel> kernels = {ladder::naive,      ladder::loop_order, ladder::register_block,
                                 ladder::wide_block, ladder::packed,     ladder::tiled};
  if (ladder::has_simd()) kernels.insert(kernels.end(), {ladder::simd, ladder::threaded});
  for (size_t k = 0; k < kernels.size(); ++k) {
    const Tensor c = full({n, n}, -1.0);
    kernels[k]({a.data<float>(), b.data<float>(), c.data<float>(), n});
    const std::vector<float> found = c.to_vector<float>();
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], 1e-3) << "rung " << k;
  }
  EXPECT_NEAR(ladder::boxed_products(1000), std::pow(1.0000001, 1000), 1e-9);
}

TEST(Ladder, SharesAddUpAndClaimsAreJudged) {
  const Ladder ladder{.machine = "made up",
                      .threads = 2,
                      .peak_flops_per_second = 1e11,
                      .rungs = {{"Python", "", "f64", 1, Cause::rest, 1e7},
                                {"boxed", "", "f64", 1, Cause::interpreter, 1e8},
                                {"naive C", "", "f32", 1, Cause::boxing, 1e9},
                                {"brrr", "", "f32", 2, Cause::simd, 1e11}}};
  double sum = 0;
  for (const auto& [cause, share] : ladder.shares()) sum += share;
  EXPECT_DOUBLE_EQ(sum, 1);
  const std::vector<LadderClaim> claims = ladder.claims();
  EXPECT_THAT(claims[0].verdict(), HasSubstr("holds: 2.0"));
  EXPECT_THAT(claims[1].verdict(), HasSubstr("holds: 2.0"));
  EXPECT_EQ(claims[2].verdict(), "not measured here");
  EXPECT_THAT(error_of([] { climb({.size = 100}); }), HasSubstr("multiples of 48"));
}

}  // namespace
}  // namespace brrr
