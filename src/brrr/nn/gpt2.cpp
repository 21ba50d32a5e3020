#include "brrr/nn/gpt2.h"

#include <cmath>

#include "brrr/graph/trace.h"
#include "brrr/ops/attention.h"
#include "brrr/ops/binary.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/cross_entropy.h"
#include "brrr/ops/matmul.h"
#include "brrr/ops/unary.h"
#include "brrr/ops/views.h"

namespace brrr {
namespace {

constexpr double kInitStd = 0.02;

// Every block adds two projections to the residual stream; scaled down, their sum keeps its variance.
double residual_std(const Gpt2Config& config) {
  return kInitStd / std::sqrt(2.0 * static_cast<double>(config.layers));
}

struct Preset {
  std::string_view name;
  Gpt2Config config;
};
constexpr Preset kPresets[] = {
    {"gpt2-tiny", {.vocab = 256, .context = 64, .layers = 4, .heads = 4, .width = 64}},
    {"gpt2-124m", {.layers = 12, .heads = 12, .width = 768}},
    {"gpt2-350m", {.layers = 24, .heads = 16, .width = 1024}},
    {"gpt2-774m", {.layers = 36, .heads = 20, .width = 1280}},
    {"gpt2-1558m", {.layers = 48, .heads = 25, .width = 1600}}};

}  // namespace

int64_t Gpt2Config::parameter_count() const {
  const int64_t h = width;
  return vocab * h + context * h + layers * (12 * h * h + 13 * h) + 2 * h;
}

Gpt2Config gpt2_preset(std::string_view name) {
  std::string known;
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset.config;
    known += join_text(known.empty() ? "" : ", ", preset.name);
  }
  fail("there is no model named \"", name, "\"; use one of ", known);
}

class Gpt2::Attention : public Module {
 public:
  Attention(const Gpt2Config& config, Random& random)
      : heads_(config.heads),
        c_attn_(config.width, 3 * config.width, random, {.std = kInitStd}),
        c_proj_(config.width, config.width, random, {.std = residual_std(config)}) {
    add_module("c_attn", c_attn_);
    add_module("c_proj", c_proj_);
  }

  Tensor operator()(const Tensor& x) const {
    const Scope scope = enter();
    const int64_t batch = x.dim(0), seq = x.dim(1), width = x.dim(2);
    const Tensor qkv = view(c_attn_(x), {batch, seq, 3, heads_, width / heads_});
    const auto part = [&](int64_t i) { return transpose(select(qkv, 2, i), 1, 2); };
    const Tensor mixed = attention(part(0), part(1), part(2), {.causal = true});
    return c_proj_(reshape(transpose(mixed, 1, 2), {batch, seq, width}));
  }

 private:
  int64_t heads_;
  Linear c_attn_, c_proj_;
};

class Gpt2::Mlp : public Module {
 public:
  Mlp(const Gpt2Config& config, Random& random)
      : c_fc_(config.width, 4 * config.width, random, {.std = kInitStd}),
        c_proj_(4 * config.width, config.width, random, {.std = residual_std(config)}) {
    add_module("c_fc", c_fc_);
    add_module("c_proj", c_proj_);
  }
  Tensor operator()(const Tensor& x) const {
    const Scope scope = enter();
    return c_proj_(gelu_tanh(c_fc_(x)));
  }

 private:
  Linear c_fc_, c_proj_;
};

class Gpt2::Block : public Module {
 public:
  Block(const Gpt2Config& config, Random& random)
      : ln_1_(config.width), attn_(config, random), ln_2_(config.width), mlp_(config, random) {
    add_module("ln_1", ln_1_);
    add_module("attn", attn_);
    add_module("ln_2", ln_2_);
    add_module("mlp", mlp_);
  }
  Tensor operator()(const Tensor& x) const {
    const Scope scope = enter();
    const Tensor mixed = x + attn_(ln_1_(x));
    return mixed + mlp_(ln_2_(mixed));
  }

 private:
  LayerNorm ln_1_;
  Attention attn_;
  LayerNorm ln_2_;
  Mlp mlp_;
};

Gpt2::Gpt2(const Gpt2Config& config, Random& random)
    : config_(config),
      wte_(config.vocab, config.width, random),
      wpe_(config.context, config.width, random, 0.01),
      ln_f_(config.width) {
  check(config.heads > 0 && config.width % config.heads == 0, "gpt2: ", config.heads,
        " heads do not divide a width of ", config.width);
  add_module("wte", wte_);
  add_module("wpe", wpe_);
  for (int64_t i = 0; i < config.layers; ++i) {
    blocks_.push_back(std::make_unique<Block>(config, random));
    add_module(join_text("h.", i), *blocks_.back());
  }
  add_module("ln_f", ln_f_);
}
Gpt2::~Gpt2() = default;

Tensor Gpt2::logits(const Tensor& tokens) const {
  check(tokens.rank() == 2, "gpt2: tokens of shape ", tokens.shape(), " must be [batch, seq]");
  const int64_t seq = tokens.dim(1);
  check(seq <= config_.context, "gpt2: ", seq, " tokens are longer than the context of ",
        config_.context, "; cut them, or use a larger context");
  Tensor x = wte_(tokens) + slice(wpe_.weight, 0, {0, seq});
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const SegmentScope layer(join_text("h.", i));
    x = (*blocks_[i])(x);
  }
  const Tensor last = ln_f_(x);
  const Scope head("head");
  return linear(last, wte_.weight);
}

Tensor Gpt2::loss(const Tensor& tokens, const Tensor& targets) const {
  return cross_entropy(logits(tokens), targets);
}

}  // namespace brrr
