// CONTRIBUTING.md, "Add a family of models", word for word but for the file: a family that the tree does not have is
// registered, and training, the planner and config.json take it. Attention and FFN are side by side in it, as in PaLM.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/graph/trace.h"
#include "brrr/infer/decoder.h"
#include "brrr/infer/huggingface.h"
#include "brrr/nn/attention.h"
#include "brrr/nn/feed_forward.h"
#include "brrr/nn/huggingface_fields.h"
#include "brrr/nn/models.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/optim/optimizer.h"
#include "brrr/plan/gpu_rates.h"
#include "brrr/plan/model/model_cost.h"
#include "brrr/plan/model/model_limits.h"
#include "brrr/plan/model/model_source.h"
#include "brrr/train/auto_size.h"
#include "plan/run_of.h"
#include "support/counter_values.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::HasSubstr;

// ---- the header ----------------------------------------------------------------------------------

struct ParallelConfig {
  int64_t vocab = 64, context = 32, layers = 2, width = 16, heads = 2, hidden = 40;
  double dropout = 0;

  int64_t parameter_count() const {
    return vocab * width + layers * (4 * width * width + 3 * width * hidden + width) + width;
  }
  ModelShape shape() const;
  static const ModelFamily& family();
  bool operator==(const ParallelConfig&) const = default;
};

class Parallel : public LanguageModel {
 public:
  Parallel(const ParallelConfig& config, Random& random);
  std::string_view family() const override { return "parallel"; }
  int64_t vocab() const override { return config_.vocab; }
  int64_t context() const override { return config_.context; }
  int64_t width() const override { return config_.width; }
  const Tensor& head_weight() const override { return embed_.weight; }

 protected:
  Tensor body(const Tensor& tokens, const ForwardInputs& inputs) const override;

 private:
  class Block;
  ParallelConfig config_;
  Embedding embed_;
  std::vector<std::unique_ptr<Block>> blocks_;
  RmsNorm norm_;
};

// ---- the module ----------------------------------------------------------------------------------

class Parallel::Block : public Module {
 public:
  Block(const ParallelConfig& config, Random& random)
      : norm_(config.width),
        attention_(config.width, random, {.heads = config.heads, .rope = RopeOptions{}}),
        ffn_(config.width, config.hidden, random) {
    add_module("norm", norm_);
    add_module("attention", attention_);
    add_module("ffn", ffn_);
  }
  Tensor operator()(const Tensor& x, const ForwardInputs& inputs) const {
    const graph::Scope scope = enter();
    const Tensor normal = norm_(x);
    return x + attention_(normal, inputs) + ffn_(normal);
  }

 private:
  RmsNorm norm_;
  SelfAttention attention_;
  SwiGlu ffn_;
};

Parallel::Parallel(const ParallelConfig& config, Random& random)
    : config_(config), embed_(config.vocab, config.width, random), norm_(config.width) {
  add_module("embed", embed_);
  for (int64_t i = 0; i < config.layers; ++i) {
    blocks_.push_back(std::make_unique<Block>(config, random));
    add_module(join_text("layers.", i), *blocks_.back());
  }
  add_module("norm", norm_);
}

Tensor Parallel::body(const Tensor& tokens, const ForwardInputs& inputs) const {
  Tensor x = embed_(tokens);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const graph::SegmentScope layer(join_text("layers.", i));
    x = (*blocks_[i])(x, inputs.of_layer(i));
  }
  return norm_(x);
}

// ---- the family ----------------------------------------------------------------------------------

const std::vector<ModelPreset>& presets() {
  static const std::vector<ModelPreset> kPresets = {{"parallel-tiny", ParallelConfig{}}};
  return kPresets;
}

ModelConfig read_config_json(const huggingface::Document& document) {
  using huggingface::whole;
  return ParallelConfig{.vocab = whole(document.json, {.key = "vocab_size"}),
                        .layers = whole(document.json, {.key = "n_layers"})};
}

const ModelFamily& ParallelConfig::family() {
  static const ModelFamily kFamily = [] {
    using C = ParallelConfig;
    ModelFamily made = define_family<ParallelConfig, Parallel>(
        "parallel", {model_field("vocab", &C::vocab), model_field("context", &C::context),
                     model_field("layers", &C::layers), model_field("width", &C::width),
                     model_field("heads", &C::heads), model_field("hidden", &C::hidden),
                     model_field("dropout", &C::dropout)});
    made.presets = presets;
    made.free_shape = [](int64_t width) {
      return ModelConfig(ParallelConfig{.hidden = 3 * width});
    };
    made.huggingface = {.types = {{"parallel", {"ParallelForCausalLM"}}}, .read = read_config_json};
    return made;
  }();
  return kFamily;
}

ModelShape ParallelConfig::shape() const {
  ModelShape shape{.layers = layers,
                   .width = width,
                   .heads = heads,
                   .kv_heads = heads,
                   .hidden = hidden,
                   .vocab = vocab,
                   .context = context,
                   .head_dim = width / std::max<int64_t>(1, heads),
                   .rotary = true,
                   .gated = true,
                   .tied = true};
  set_grouped_attention(shape);
  shape.layer_vectors = shape.outside_vectors = static_cast<double>(width);
  return shape;
}

// ---- what takes it -------------------------------------------------------------------------------

void register_once() {
  static const bool done = (register_family(ParallelConfig::family()), true);
  ASSERT_TRUE(done);
}

TEST(OutsideFamily, IsFoundByNameAndThroughJson) {
  register_once();
  const ModelConfig config = model_preset("parallel-tiny");
  EXPECT_EQ(family_of(config), "parallel");
  EXPECT_EQ(to_json(config),
            R"({"family":"parallel","vocab":64,"context":32,"layers":2,"width":16,"heads":2,)"
            R"("hidden":40,"dropout":0.0})");
  EXPECT_EQ(model_from_json(to_json(config)), config);
  EXPECT_EQ(model_from_json(R"({"family": "parallel", "layers": 3})"),
            ModelConfig(ParallelConfig{.layers = 3}));
  EXPECT_EQ(infer::config_from_huggingface(
                R"({"model_type": "parallel", "vocab_size": 9, "n_layers": 1})"),
            ModelConfig(ParallelConfig{.vocab = 9, .layers = 1}));
  EXPECT_EQ(error_of([&] { register_family(ParallelConfig::family()); }),
            "there is a family \"parallel\" already; choose another name");
}

TEST(OutsideFamily, TrainsAndDecodes) {
  register_once();
  Random random(3);
  const auto model = make_model(model_preset("parallel-tiny"), random);
  EXPECT_EQ(model->parameter_count(), parameter_count(model_preset("parallel-tiny")));
  AdamW optimizer(model->trainable_parameters(), {});
  const TokenBatch batch = token_batch(0, 2, 16, 64);
  const auto loss = [&] { return model->loss(batch.tokens, batch.targets); };
  const double before = loss().item<double>();
  optimizer.update(grad(loss(), optimizer.parameters()), 1e-2);
  EXPECT_LT(loss().item<double>(), before);
  infer::Decoder decoder(*model, {.block = 8});
  const Tensor next = decoder.feed({{1, 2, 3}});
  EXPECT_EQ(next.shape(), (Shape{1, 64}));
}

// From sizes chosen for a run to the plan of one.
TEST(OutsideFamily, IsPlanned) {
  register_once();
  runs::TrainConfig run;
  run.model.family = "parallel";
  const training::ResolvedRun chosen =
      training::resolve_sizes(run, {.train_tokens = 1'000'000, .vocab = 100, .documents = 1},
                              {.cores = 2, .memory = 8_GiB, .peak_flops = FlopsPerSecond(2e11)});
  EXPECT_EQ(family_of(chosen.model), "parallel");
  EXPECT_EQ(vocab_of(chosen.model), 100);

  const ModelConfig free =
      plan::find_model("", {.family = "parallel", .layers = 5, .hidden = 64, .heads = 4}).config;
  EXPECT_EQ(free, ModelConfig(ParallelConfig{.layers = 5, .width = 64, .heads = 4, .hidden = 192}));
  EXPECT_EQ(plan::parameters_of(free), static_cast<double>(parameter_count(free)));
  const hardware::Rates rates =
      plan::gpu_rates(hardware::find_gpu("h100"), compiler::Precision::bf16_mixed);
  const plan::CostOptions options{.batch = 2, .seq = 32};
  const plan::StepCost planned = plan::model_cost(free, options, rates).total(),
                       traced = plan::traced_cost(free, options, rates);
  EXPECT_EQ(planned.parameters(), static_cast<double>(parameter_count(free)));
  EXPECT_EQ(planned.products, traced.products);
  EXPECT_EQ(planned.activations, traced.activations);
  EXPECT_EQ(plan::tensor_shard(free, 2).size("heads"), 2);
  EXPECT_THAT(error_of([&] { plan::find_model("parallel-tiny", {.experts = 4}); }),
              HasSubstr("parallel has no experts; use --family llama"));

  plan::RunQuestion question = run_of("parallel-tiny", "h100", 8);
  question.layout.tp = 2;
  const plan::RunAnswer plan = plan::answer(question);
  EXPECT_EQ(plan.params, static_cast<double>(parameter_count(*question.model)));
  EXPECT_GT(plan.step_seconds, 0);
}

}  // namespace
}  // namespace brrr
