// GPT-2 as a family: fields, presets, sizes, and the files of transformers.
#include <algorithm>

#include "brrr/nn/families/gpt2.h"
#include "brrr/nn/huggingface_fields.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

using huggingface::Json;
using huggingface::whole;

// Sizes of the published models as their configuration files have them. The tiny ones are for tests, the
// small ones for one computer.
const std::vector<ModelPreset>& presets() {
  static const std::vector<ModelPreset> kPresets = {
      {"gpt2-tiny", Gpt2Config{.vocab = 256, .context = 64, .layers = 4, .heads = 4, .width = 64}},
      {"gpt2-char", Gpt2Config{.vocab = 65, .context = 256, .layers = 6, .heads = 6, .width = 384}},
      {"gpt2-124m", Gpt2Config{.layers = 12, .heads = 12, .width = 768}},
      {"gpt2-350m", Gpt2Config{.layers = 24, .heads = 16, .width = 1024}},
      {"gpt2-774m", Gpt2Config{.layers = 36, .heads = 20, .width = 1280}},
      {"gpt2-1558m", Gpt2Config{.layers = 48, .heads = 25, .width = 1600}},
      {"gpt3-175b", Gpt2Config{.context = 2048, .layers = 96, .heads = 96, .width = 12288}}};
  return kPresets;
}

ModelConfig read_huggingface(const huggingface::Document& document) {
  const Json& json = document.json;
  const auto activation =
      huggingface::value_or<std::string>(json, "activation_function", "gelu_new");
  check(activation == "gelu_new" || activation == "gelu_pytorch_tanh",
        "config.json: activation_function is ", activation, "; only gelu_new is supported");
  huggingface::require_setting(json, "layer_norm_epsilon", 1e-5);
  huggingface::require_setting(json, "tie_word_embeddings", true);
  huggingface::require_setting(json, "scale_attn_weights", true);
  huggingface::require_setting(json, "scale_attn_by_inverse_layer_idx", false);
  huggingface::require_setting(json, "pruned_heads", Json::object());
  const int64_t context = whole(json, {.key = "n_positions", .if_absent = 1024});
  // An old second name, which their class no longer reads.
  const int64_t again = whole(json, {.key = "n_ctx", .if_absent = context, .if_null = context});
  check(again == context, "config.json: n_ctx is ", again, " and n_positions is ", context,
        "; give one context");
  return Gpt2Config{.vocab = whole(json, {.key = "vocab_size"}),
                    .context = context,
                    .layers = whole(json, {.key = "n_layer", .most = kMostLayers}),
                    .heads = whole(json, {.key = "n_head"}),
                    .width = whole(json, {.key = "n_embd"}),
                    .hidden = whole(json, {.key = "n_inner", .if_absent = 0, .if_null = 0})};
}

std::string write_huggingface(const ModelConfig& config) {
  const auto& c = config.get<Gpt2Config>();
  check(c.bias && c.head_dim == 0,
        "gpt2: transformers' GPT2 has biases and heads of width / heads elements; this model does "
        "not");
  Json json{{"model_type", "gpt2"},
            {"architectures", {"GPT2LMHeadModel"}},
            {"activation_function", "gelu_new"},
            {"layer_norm_epsilon", 1e-5},
            {"vocab_size", c.vocab},
            {"n_positions", c.context},
            {"n_layer", c.layers},
            {"n_head", c.heads},
            {"n_embd", c.width},
            {"n_inner", c.hidden > 0 ? Json(c.hidden) : Json()},
            {"embd_pdrop", c.dropout},
            {"resid_pdrop", c.dropout},
            {"attn_pdrop", c.attention_dropout},
            {"tie_word_embeddings", true}};
  return json.dump(1);
}

// Names may have a prefix, and their GPT-2 keeps projections as [in, out].
std::vector<NamedTensor> weights_of(const ModelConfig&, std::vector<NamedTensor> theirs) {
  constexpr std::string_view kPrefix = "transformer.";
  for (NamedTensor& value : theirs) {
    if (value.name.starts_with(kPrefix)) value.name.erase(0, kPrefix.size());
    if (value.tensor.rank() == 2 && value.name.starts_with("h."))
      value.tensor = transpose(value.tensor);
  }
  return theirs;
}

ModelFamily make_family() {
  using C = Gpt2Config;
  static constexpr std::string_view kResidualInits[] = {"scaled", "zero"};
  ModelFamily family = define_family<Gpt2Config, Gpt2>(
      "gpt2", {model_field("vocab", &C::vocab), model_field("context", &C::context),
               model_field("layers", &C::layers), model_field("heads", &C::heads),
               model_field("width", &C::width), model_field("bias", &C::bias),
               model_field("dropout", &C::dropout),
               model_field("residual_init", &C::residual_init, kResidualInits),
               model_field("attention_dropout", &C::attention_dropout),
               model_field("head_dim", &C::head_dim), model_field("hidden", &C::hidden)});
  family.presets = presets;
  family.free_shape = [](int64_t) { return ModelConfig(Gpt2Config{}); };
  family.huggingface = {.types = {{"gpt2", {"GPT2LMHeadModel", "GPT2Model"}}},
                        .read = read_huggingface,
                        .write = write_huggingface,
                        .weights = weights_of};
  return family;
}

}  // namespace

const ModelFamily& Gpt2Config::family() {
  static const ModelFamily kFamily = make_family();
  return kFamily;
}

Gpt2Config gpt2_preset(std::string_view name) {
  return find_preset(Gpt2Config::family(), name).get<Gpt2Config>();
}

ModelShape Gpt2Config::shape() const {
  ModelShape shape{.layers = layers,
                   .width = width,
                   .heads = heads,
                   .kv_heads = heads,
                   .hidden = hidden > 0 ? hidden : 4 * width,
                   .vocab = vocab,
                   .context = context,
                   .head_dim = head_dim > 0 ? head_dim : width / std::max<int64_t>(1, heads),
                   .learned_positions = context,
                   .tied = true};
  set_grouped_attention(shape);
  const auto h = static_cast<double>(width), q = shape.pair_width,
             f = static_cast<double>(shape.hidden);
  shape.layer_vectors = bias ? 3 * q + f + 6 * h : 2 * h;
  shape.outside_vectors = bias ? 2 * h : h;
  return shape;
}

}  // namespace brrr
