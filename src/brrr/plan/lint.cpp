#include "brrr/plan/lint.h"

#include <fmt/format.h>

#include <algorithm>

#include "brrr/plan/model/model_cost.h"
#include "brrr/plan/op_cost.h"

namespace brrr::plan {
namespace {

constexpr int64_t kVocabMultiple = 64, kTile = 128, kHeadMultiple = 64;

// A product [tokens, k] x [k, n] that a layer, or the model, has so many times.
struct Product {
  const char* name;
  int64_t n, k;
  double times;
};

// Seconds at the peak over what tiles, waves and alignment leave of it, and the FLOPs of that.
struct Price {
  double seconds = 0, flops = 0;
  double seconds_of_a_flop() const { return seconds / flops; }
};

int64_t round_up(int64_t size, int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

std::vector<Product> products_of(const ModelShape& s, bool is_gated) {
  const auto layers = static_cast<double>(s.layers);
  const auto ad = static_cast<int64_t>(s.pair_width);
  const int64_t kv = s.heads > 0 ? ad / s.heads * s.kv_heads : 0;
  return {{"q, k, v", ad + 2 * kv, s.width, layers},
          {"out", s.width, ad, layers},
          {"up", (is_gated ? 2 : 1) * s.hidden, s.width, layers},
          {"down", s.width, s.hidden, layers},
          {"head", s.vocab, s.width, 1}};
}

double peak_of(const hardware::GpuSpec& gpu) {
  const hardware::PeakRate* half = gpu.find(hardware::Arithmetic::bf16);
  return (half ? *half : gpu.peak(hardware::Arithmetic::fp16)).dense.value();
}

// Backward has the two products with n and k exchanged, so both directions count.
Price price_of(const Product& p, int64_t tokens, const hardware::GpuSpec& gpu) {
  const double flops =
      2.0 * static_cast<double>(tokens) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const double rate = peak_of(gpu) * std::min(alignment_share(p.n), alignment_share(p.k));
  const double forward = flops / (rate * quantise(tokens, p.n, gpu).efficiency),
               to_input = flops / (rate * quantise(tokens, p.k, gpu).efficiency),
               to_weight = flops / (rate * quantise(p.n, p.k, gpu).efficiency);
  return {p.times * (forward + to_input + to_weight), 3 * p.times * flops};
}

// Causal attention over the whole context, two products forward and five backward, over heads as long as kernels make
// them.
Price attention_price(const ModelShape& s, int64_t tokens, int64_t context,
                      const hardware::GpuSpec& gpu) {
  const auto head = static_cast<int64_t>(s.pair_width) / s.heads;
  const double flops = 7 * static_cast<double>(tokens) * static_cast<double>(context) *
                       s.pair_width * static_cast<double>(s.layers);
  const double padded =
      static_cast<double>(round_up(head, kHeadMultiple)) / static_cast<double>(head);
  return {flops * padded / peak_of(gpu), flops};
}

class Linter {
 public:
  Linter(const ModelConfig& model, const hardware::GpuSpec& gpu, const LintOptions& options)
      : gpu_(gpu),
        options_(options),
        shape_(shape_of(model)),
        is_gated_(shape_.gated),
        context_(context_of(model)),
        now_(price_of(shape_)) {}

  std::vector<LintFinding> run() {
    lint_vocab();
    lint_width();
    lint_heads();
    lint_waves();
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const LintFinding& a, const LintFinding& b) { return a.gain > b.gain; });
    return std::move(findings_);
  }

 private:
  Price price_of(const ModelShape& shape) const {
    Price sum = attention_price(shape, options_.tokens, context_, gpu_);
    for (const Product& p : products_of(shape, is_gated_)) {
      const Price own = plan::price_of(p, options_.tokens, gpu_);
      sum.seconds += own.seconds, sum.flops += own.flops;
    }
    return sum;
  }
  void add(std::string what, std::string rule, std::string change, double gain) {
    findings_.push_back({std::move(what), std::move(rule), std::move(change), gain});
  }
  // A model of another size does other work: what counts is the time of a FLOP.
  double gain_of_size(const ModelShape& changed) const {
    return 1 - price_of(changed).seconds_of_a_flop() / now_.seconds_of_a_flop();
  }

  // Padding is no work: its FLOPs are in the time and not in what is gained.
  void lint_vocab() {
    ModelShape changed = shape_;
    changed.vocab = whole_tiles_of_vocab(shape_.vocab);
    const double gain = 1 - price_of(changed).seconds / now_.seconds;
    if (changed.vocab != shape_.vocab && gain > 0)
      add(fmt::format("vocabulary {}", shape_.vocab),
          fmt::format("rows of the logits do not start on 16 bytes: {} is no multiple of {}",
                      shape_.vocab, kVocabMultiple),
          fmt::format("pad to {}; `brrr train` does, inside its step", changed.vocab), gain);
  }

  void lint_width() {
    const std::string rule = fmt::format("no multiple of a tile's {}", kTile);
    if (shape_.width % kTile != 0) {
      const auto of_width = [&](int64_t width) {
        ModelShape changed = shape_;
        if (changed.pair_width == static_cast<double>(changed.width))
          changed.pair_width = static_cast<double>(width);
        changed.width = width;
        return changed;
      };
      const int64_t above = round_up(shape_.width, kTile), below = std::max(kTile, above - kTile);
      const double gain_above = gain_of_size(of_width(above)),
                   gain_below = gain_of_size(of_width(below));
      add(fmt::format("width {}", shape_.width), rule,
          fmt::format("{}", gain_above >= gain_below ? above : below),
          std::max({0.0, gain_above, gain_below}));
    }
    if (shape_.hidden % kTile == 0) return;
    ModelShape changed = shape_;
    changed.hidden = round_up(shape_.hidden, kTile);
    const double gain = gain_of_size(changed);
    if (gain > 0)
      add(fmt::format("ffn {}", shape_.hidden), rule, fmt::format("{}", changed.hidden), gain);
  }

  void lint_heads() {
    const auto head = static_cast<int64_t>(shape_.pair_width) / shape_.heads;
    const Price attention = attention_price(shape_, options_.tokens, context_, gpu_);
    if (head % kHeadMultiple != 0)
      add(fmt::format("heads of {}", head),
          "attention kernels are made for 64 and 128; others are padded to the next",
          fmt::format("{} elements", round_up(head, kHeadMultiple)),
          (attention.seconds - attention.flops / peak_of(gpu_)) / now_.seconds);
    if (shape_.heads % options_.tp != 0)
      add(fmt::format("{} heads", shape_.heads),
          fmt::format("tensor parallelism of {} does not divide them", options_.tp),
          "another degree", 0);
    if (shape_.heads % 8 != 0)
      add(fmt::format("{} heads", shape_.heads),
          "no multiple of 8: eight devices of a node cannot share them",
          fmt::format("{}, where a layer is to lie on eight devices", round_up(shape_.heads, 8)),
          0);
  }

  // Few waves, the last of them mostly empty: of up to four times the tokens those that leave least idle.
  void lint_waves() {
    for (const Product& p : products_of(shape_, is_gated_)) {
      const Quantisation q = quantise(options_.tokens, p.n, gpu_);
      if (q.waves > 4 || q.efficiency >= 0.8) continue;
      const double seconds = plan::price_of(p, options_.tokens, gpu_).seconds;
      int64_t best = 1;
      double gain = 0;
      for (int64_t times = 2; times <= 4; ++times) {
        const double own =
            plan::price_of(p, times * options_.tokens, gpu_).seconds / static_cast<double>(times);
        if (seconds - own > gain * now_.seconds)
          best = times, gain = (seconds - own) / now_.seconds;
      }
      if (best == 1) continue;  // tiles are empty at their edge: that is the width's
      add(fmt::format("{} [{} x {}]", p.name, options_.tokens, p.n),
          fmt::format("{} tiles in {} wave{} leave {:.0f} % of the device idle", q.tiles, q.waves,
                      q.waves == 1 ? "" : "s", 100 * (1 - q.efficiency)),
          fmt::format("{} tokens at a time", best * options_.tokens), gain);
    }
  }

  const hardware::GpuSpec& gpu_;
  LintOptions options_;
  ModelShape shape_;
  bool is_gated_;
  int64_t context_;
  Price now_;
  std::vector<LintFinding> findings_;
};

}  // namespace

double linted_flops(const ModelConfig& model, int64_t tokens) {
  double flops = 0;
  for (const Product& p : products_of(shape_of(model), shape_of(model).gated))
    flops += 2.0 * p.times * static_cast<double>(tokens) * static_cast<double>(p.n) *
             static_cast<double>(p.k);
  return flops;
}

int64_t whole_tiles_of_vocab(int64_t vocab) { return round_up(vocab, kVocabMultiple); }

double alignment_share(int64_t elements) {
  // 16-bit elements: 8 of them are 16 bytes. Shares by what a load brings: all, half, a quarter of it at a time.
  if (elements % 8 == 0) return 1;
  return elements % 4 == 0 ? 0.8 : elements % 2 == 0 ? 0.65 : 0.5;
}

std::vector<LintFinding> lint(const ModelConfig& model, const hardware::GpuSpec& gpu,
                              const LintOptions& options) {
  check(options.tokens >= 1, "a micro-batch of ", options.tokens, " tokens is empty");
  check(options.tp >= 1, "a tensor-parallel degree of ", options.tp, " is none");
  check(shape_of(model).heads > 0,
        "lint looks at transformers; a recurrent model has other products");
  return Linter(model, gpu, options).run();
}

}  // namespace brrr::plan
