// Llama and its relatives as a family: fields, presets and sizes.
#include "brrr/nn/decoder_blocks.h"
#include "brrr/nn/families/llama.h"
#include "brrr/nn/feed_forward.h"

namespace brrr {
namespace {

// Sizes of the published models as their configuration files have them. The tiny ones are for tests, the
// small ones for one computer.
const std::vector<ModelPreset>& presets() {
  static const std::vector<ModelPreset> kPresets = {
      {"llama-tiny", LlamaConfig{.vocab = 256,
                                 .context = 64,
                                 .layers = 2,
                                 .width = 64,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .hidden = 176,
                                 .tied = true}},
      {"llama-moe-tiny", LlamaConfig{.vocab = 256,
                                     .context = 64,
                                     .layers = 2,
                                     .width = 64,
                                     .heads = 4,
                                     .kv_heads = 2,
                                     .hidden = 96,
                                     .tied = true,
                                     .experts = 4,
                                     .top_k = 2}},
      {"llama-mla-tiny", LlamaConfig{.vocab = 256,
                                     .context = 64,
                                     .layers = 2,
                                     .width = 64,
                                     .heads = 4,
                                     .hidden = 176,
                                     .tied = true,
                                     .q_rank = 48,
                                     .kv_rank = 32,
                                     .nope_dim = 16,
                                     .rope_dim = 8,
                                     .value_dim = 16}},
      {"stories-260k", LlamaConfig{.vocab = 512,
                                   .context = 512,
                                   .layers = 5,
                                   .width = 64,
                                   .heads = 8,
                                   .kv_heads = 4,
                                   .hidden = 172,
                                   .tied = true}},
      {"stories-15m",
       LlamaConfig{
           .context = 256, .layers = 6, .width = 288, .heads = 6, .hidden = 768, .tied = true}},
      {"stories-110m",
       LlamaConfig{
           .context = 1024, .layers = 12, .width = 768, .heads = 12, .hidden = 2048, .tied = true}},
      {"smollm-135m", LlamaConfig{.vocab = 49152,
                                  .context = 2048,
                                  .layers = 30,
                                  .width = 576,
                                  .heads = 9,
                                  .kv_heads = 3,
                                  .hidden = 1536,
                                  .tied = true}},
      {"qwen2.5-0.5b", LlamaConfig{.vocab = 151936,
                                   .context = 32768,
                                   .layers = 24,
                                   .width = 896,
                                   .heads = 14,
                                   .kv_heads = 2,
                                   .hidden = 4864,
                                   .tied = true,
                                   .qkv_bias = true,
                                   .rope_base = 1e6,
                                   .norm_eps = 1e-6}},
      {"tinyllama-1.1b", LlamaConfig{.context = 2048,
                                     .layers = 22,
                                     .width = 2048,
                                     .heads = 32,
                                     .kv_heads = 4,
                                     .hidden = 5632}},
      {"qwen2.5-1.5b", LlamaConfig{.vocab = 151936,
                                   .context = 32768,
                                   .layers = 28,
                                   .width = 1536,
                                   .heads = 12,
                                   .kv_heads = 2,
                                   .hidden = 8960,
                                   .tied = true,
                                   .qkv_bias = true,
                                   .rope_base = 1e6,
                                   .norm_eps = 1e-6}},
      {"llama2-7b",
       LlamaConfig{.context = 4096, .layers = 32, .width = 4096, .heads = 32, .hidden = 11008}},
      {"llama2-13b",
       LlamaConfig{.context = 4096, .layers = 40, .width = 5120, .heads = 40, .hidden = 13824}},
      {"llama2-70b", LlamaConfig{.context = 4096,
                                 .layers = 80,
                                 .width = 8192,
                                 .heads = 64,
                                 .kv_heads = 8,
                                 .hidden = 28672}},
      {"qwen2.5-7b", LlamaConfig{.vocab = 152064,
                                 .context = 32768,
                                 .layers = 28,
                                 .width = 3584,
                                 .heads = 28,
                                 .kv_heads = 4,
                                 .hidden = 18944,
                                 .qkv_bias = true,
                                 .rope_base = 1e6,
                                 .norm_eps = 1e-6}},
      {"llama3-8b", LlamaConfig{.vocab = 128256,
                                .context = 8192,
                                .layers = 32,
                                .width = 4096,
                                .heads = 32,
                                .kv_heads = 8,
                                .hidden = 14336,
                                .rope_base = 5e5}},
      {"llama3-70b", LlamaConfig{.vocab = 128256,
                                 .context = 8192,
                                 .layers = 80,
                                 .width = 8192,
                                 .heads = 64,
                                 .kv_heads = 8,
                                 .hidden = 28672,
                                 .rope_base = 5e5}},
      {"llama3-405b", LlamaConfig{.vocab = 128256,
                                  .context = 131072,
                                  .layers = 126,
                                  .width = 16384,
                                  .heads = 128,
                                  .kv_heads = 8,
                                  .hidden = 53248,
                                  .rope_base = 5e5}},
      {"mixtral-8x7b", LlamaConfig{.context = 32768,
                                   .layers = 32,
                                   .width = 4096,
                                   .heads = 32,
                                   .kv_heads = 8,
                                   .hidden = 14336,
                                   .rope_base = 1e6,
                                   .experts = 8,
                                   .top_k = 2}},
      {"deepseek-v3", LlamaConfig{.vocab = 129280,
                                  .context = 163840,
                                  .layers = 61,
                                  .width = 7168,
                                  .heads = 128,
                                  .hidden = 18432,
                                  .norm_eps = 1e-6,
                                  .experts = 256,
                                  .top_k = 8,
                                  .expert_hidden = 2048,
                                  .shared_expert_hidden = 2048,
                                  .q_rank = 1536,
                                  .kv_rank = 512,
                                  .nope_dim = 128,
                                  .rope_dim = 64,
                                  .value_dim = 128,
                                  .dense_layers = 3}}};
  return kPresets;
}

void check_latent_attention(const LlamaConfig& c) {
  if (c.kv_rank == 0) {
    check(c.q_rank == 0 && c.nope_dim == 0 && c.rope_dim == 0 && c.value_dim == 0,
          "q_rank, nope_dim, rope_dim and value_dim are of latent attention; give kv_rank as well");
    return;
  }
  check_range("a kv_rank", c.kv_rank, 1, kLargestSize);
  check_range("a q_rank", c.q_rank, 0, kLargestSize);
  check_range("a nope_dim", c.nope_dim, 1, kLargestSize);
  check_range("a rope_dim", c.rope_dim, 2, kLargestSize);
  check_range("a value_dim", c.value_dim, 1, kLargestSize);
}

void check_experts(const LlamaConfig& c) {
  check_range("a number of experts", c.experts, 0, kLargestSize);
  check_range("hidden units of an expert", c.expert_hidden, 0, kLargestSize);
  check_range("hidden units of shared experts", c.shared_expert_hidden, 0, kLargestSize);
  if (c.experts == 0) {
    check(c.expert_hidden == 0 && c.shared_expert_hidden == 0 && c.dense_layers == 0,
          "expert_hidden, shared_expert_hidden and dense_layers are of a mixture; give experts as "
          "well");
    return;
  }
  check(c.top_k >= 1 && c.top_k <= c.experts, "a token cannot choose ", c.top_k, " of ", c.experts,
        " experts");
  check(c.dense_layers >= 0 && c.dense_layers <= c.layers, c.dense_layers,
        " first layers without experts are not 0 to all ", c.layers, " layers");
}

std::vector<ModelField> fields() {
  using C = LlamaConfig;
  static constexpr std::string_view kRopeStretches[] = {"none", "linear", "llama3"};
  std::vector<ModelField> fields = {model_field("vocab", &C::vocab),
                                    model_field("context", &C::context),
                                    model_field("layers", &C::layers),
                                    model_field("width", &C::width),
                                    model_field("heads", &C::heads),
                                    model_field("kv_heads", &C::kv_heads),
                                    model_field("head_dim", &C::head_dim),
                                    model_field("hidden", &C::hidden),
                                    model_field("tied", &C::tied),
                                    model_field("qkv_bias", &C::qkv_bias),
                                    model_field("qk_norm", &C::qk_norm),
                                    model_field("window", &C::window),
                                    model_field("rope_base", &C::rope_base),
                                    model_field("norm_eps", &C::norm_eps),
                                    model_field("dropout", &C::dropout),
                                    model_field("zero_residual_init", &C::zero_residual_init),
                                    model_field("experts", &C::experts),
                                    model_field("top_k", &C::top_k),
                                    model_field("expert_hidden", &C::expert_hidden),
                                    model_field("shared_expert_hidden", &C::shared_expert_hidden),
                                    model_field("capacity_factor", &C::capacity_factor),
                                    model_field("balance_weight", &C::balance_weight),
                                    model_field("q_rank", &C::q_rank),
                                    model_field("kv_rank", &C::kv_rank),
                                    model_field("nope_dim", &C::nope_dim),
                                    model_field("rope_dim", &C::rope_dim),
                                    model_field("value_dim", &C::value_dim),
                                    model_field("attention_dropout", &C::attention_dropout),
                                    model_field("dense_layers", &C::dense_layers),
                                    model_field("rope_stretch", &C::rope_stretch, kRopeStretches),
                                    model_field("rope_factor", &C::rope_factor),
                                    model_field("rope_low_turns", &C::rope_low_turns),
                                    model_field("rope_high_turns", &C::rope_high_turns),
                                    model_field("rope_trained_context", &C::rope_trained_context)};
  return fields;
}

ModelFamily make_family() {
  ModelFamily family = define_family<LlamaConfig, Llama>("llama", fields());
  family.presets = presets;
  // Two thirds of four widths, gated: as many parameters as GPT-2's FFN. Published models round up to 256.
  family.from_scratch = [](int64_t width) {
    return ModelConfig(LlamaConfig{.hidden = gated_hidden(width, 16), .tied = true});
  };
  family.free_shape = [](int64_t width) {
    return ModelConfig(LlamaConfig{.hidden = gated_hidden(width, 256)});
  };
  family.check_sizes = [](const ModelConfig& config) {
    check_latent_attention(config.get<LlamaConfig>());
    check_experts(config.get<LlamaConfig>());
  };
  family.huggingface = llama_huggingface();
  return family;
}

void set_latent_attention(const LlamaConfig& c, ModelShape& shape) {
  const auto h = static_cast<double>(c.width), heads = static_cast<double>(c.heads),
             q = static_cast<double>(c.q_rank), kv = static_cast<double>(c.kv_rank),
             nope = static_cast<double>(c.nope_dim), rope = static_cast<double>(c.rope_dim),
             value = static_cast<double>(c.value_dim);
  const double q_width = heads * (nope + rope);
  const double queries = c.q_rank == 0 ? h * q_width : q * (h + 1 + q_width);
  shape.latent = true;
  shape.pair_width = heads * (static_cast<double>(c.nope_dim + c.rope_dim + c.value_dim) / 2);
  shape.mixer_matrices =
      queries + h * (kv + rope) + kv + kv * heads * (nope + value) + heads * value * h;
  shape.mixer_elements = 2 * q_width + heads * value + q + kv;
  shape.cache_elements = kv + rope;
}

}  // namespace

const ModelFamily& LlamaConfig::family() {
  static const ModelFamily kFamily = make_family();
  return kFamily;
}

LlamaConfig llama_preset(std::string_view name) {
  return find_preset(LlamaConfig::family(), name).get<LlamaConfig>();
}

ModelShape LlamaConfig::shape() const {
  ModelShape shape = gated_decoder_shape(*this);
  shape.tied = tied;
  if (window > 0) shape.windows = {window};
  shape.experts = experts;
  shape.top_k = top_k;
  shape.expert_hidden = expert_hidden > 0 ? expert_hidden : hidden;
  shape.shared_expert_hidden = shared_expert_hidden;
  shape.dense_layers = dense_layers;
  shape.layer_vectors = 2 * static_cast<double>(width);
  if (kv_rank > 0) {
    set_latent_attention(*this, shape);
    return shape;
  }
  if (qkv_bias) shape.layer_vectors += shape.mixer_elements;
  if (qk_norm) shape.layer_vectors += 2 * static_cast<double>(shape.head_dim);
  return shape;
}

}  // namespace brrr
