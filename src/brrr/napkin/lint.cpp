#include "brrr/napkin/lint.h"

#include <fmt/format.h>

#include <algorithm>

#include "brrr/napkin/model_cost.h"
#include "brrr/napkin/op_cost.h"

namespace brrr {
namespace {

constexpr int64_t kVocabMultiple = 64, kTile = 128;

// A product [tokens, k] x [k, n] that a layer, or the model, has so many times.
struct Product {
  const char* name;
  int64_t n, k;
  double times;
};

int64_t round_up(int64_t size, int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

std::vector<Product> products_of(const ModelConfig& config) {
  const ModelShape s = shape_of(config);
  const auto layers = static_cast<double>(s.layers);
  const auto ad = static_cast<int64_t>(s.pair_width);
  const int64_t kv = s.heads > 0 ? ad / s.heads * s.kv_heads : 0;
  const bool is_gated = std::holds_alternative<LlamaConfig>(config);
  return {{"q, k, v", ad + 2 * kv, s.width, layers},
          {"out", s.width, ad, layers},
          {"up", (is_gated ? 2 : 1) * s.hidden, s.width, layers},
          {"down", s.width, s.hidden, layers},
          {"head", s.vocab, s.width, 1}};
}

// Seconds at the peak over what tiles, waves and alignment leave of it. Backward has the two products with n and
// k exchanged, so both directions count.
double seconds_of(const Product& p, int64_t tokens, const GpuSpec& gpu) {
  const PeakRate* half = gpu.find(Arithmetic::bf16);
  const double peak = (half ? *half : gpu.peak(Arithmetic::fp16)).dense.value();
  const double flops =
      2.0 * static_cast<double>(tokens) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const double align = std::min(alignment_share(p.n), alignment_share(p.k));
  const double forward = flops / (peak * align * quantise(tokens, p.n, gpu).efficiency),
               to_input = flops / (peak * align * quantise(tokens, p.k, gpu).efficiency),
               to_weight = flops / (peak * align * quantise(p.n, p.k, gpu).efficiency);
  return p.times * (forward + to_input + to_weight);
}

double seconds_of(const ModelConfig& config, int64_t tokens, const GpuSpec& gpu) {
  double sum = 0;
  for (const Product& p : products_of(config)) sum += seconds_of(p, tokens, gpu);
  return sum;
}

class Linter {
 public:
  Linter(const ModelConfig& model, const GpuSpec& gpu, const LintOptions& options)
      : gpu_(gpu), options_(options), now_(seconds_of(model, options.tokens, gpu)) {}

  // Useful work is the same after the change: padding costs its own FLOPs, which are in both numbers.
  void add(std::string what, std::string rule, std::string change, const ModelConfig& changed) {
    const double gain = 1 - seconds_of(changed, options_.tokens, gpu_) / now_;
    if (gain > 0) findings_.push_back({std::move(what), std::move(rule), std::move(change), gain});
  }
  void note(std::string what, std::string rule, std::string change) {
    findings_.push_back({std::move(what), std::move(rule), std::move(change), 0});
  }
  std::vector<LintFinding> take() {
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const LintFinding& a, const LintFinding& b) { return a.gain > b.gain; });
    return std::move(findings_);
  }

 private:
  const GpuSpec& gpu_;
  LintOptions options_;
  double now_;
  std::vector<LintFinding> findings_;
};

void lint_vocab(Linter& linter, const ModelConfig& model) {
  const int64_t vocab = vocab_of(model), padded = whole_tiles_of_vocab(vocab);
  if (padded != vocab)
    linter.add(fmt::format("vocabulary {}", vocab),
               fmt::format("rows of the logits do not start on 16 bytes: {} is no multiple of {}",
                           vocab, kVocabMultiple),
               fmt::format("pad to {}; `brrr train` does, inside its step", padded),
               with_vocab(model, padded));
}

void lint_width(Linter& linter, const ModelConfig& model, const ModelShape& s) {
  if (s.width % kTile != 0)
    linter.note(fmt::format("width {}", s.width), fmt::format("no multiple of a tile's {}", kTile),
                fmt::format("{} or {}", s.width / kTile * kTile, round_up(s.width, kTile)));
  const int64_t wide = round_up(s.hidden, kTile);
  if (s.hidden == wide || s.hidden == 0) return;
  ModelConfig changed = model;
  std::visit(
      [&](auto& c) {
        if constexpr (requires { c.hidden; }) c.hidden = wide;
      },
      changed);
  linter.add(fmt::format("ffn {}", s.hidden), fmt::format("no multiple of a tile's {}", kTile),
             fmt::format("{}", wide), changed);
}

void lint_heads(Linter& linter, const ModelShape& s, int64_t tp) {
  if (s.heads == 0) return;
  const auto head = static_cast<int64_t>(s.pair_width) / s.heads;
  if (head % 64 != 0)
    linter.note(fmt::format("heads of {}", head),
                "attention kernels are tuned for 64 and 128; others are padded "
                "to the next",
                fmt::format("{} elements", round_up(head, 64)));
  if (s.heads % tp != 0)
    linter.note(fmt::format("{} heads", s.heads),
                fmt::format("tensor parallelism of {} does not divide them", tp), "another degree");
  if (s.heads % 8 != 0)
    linter.note(fmt::format("{} heads", s.heads),
                "no multiple of 8: eight devices of a node cannot share them",
                fmt::format("{}", round_up(s.heads, 8)));
}

}  // namespace

int64_t whole_tiles_of_vocab(int64_t vocab) { return round_up(vocab, kVocabMultiple); }

double alignment_share(int64_t elements) {
  // 16-bit elements: 8 of them are 16 bytes. Shares by what a load brings: all, half, a quarter of it at a time.
  if (elements % 8 == 0) return 1;
  return elements % 4 == 0 ? 0.8 : elements % 2 == 0 ? 0.65 : 0.5;
}

std::vector<LintFinding> lint(const ModelConfig& model, const GpuSpec& gpu,
                              const LintOptions& options) {
  check(options.tokens >= 1, "a micro-batch of ", options.tokens, " tokens is empty");
  check(options.tp >= 1, "a tensor-parallel degree of ", options.tp, " is none");
  const ModelShape shape = shape_of(model);
  check(shape.heads > 0, "lint looks at transformers; a recurrent model has other products");
  Linter linter(model, gpu, options);
  lint_vocab(linter, model);
  lint_width(linter, model, shape);
  lint_heads(linter, shape, options.tp);
  for (const Product& p : products_of(model)) {
    const Quantisation q = quantise(options.tokens, p.n, gpu);
    if (q.waves <= 4 && q.efficiency < 0.8)
      linter.note(fmt::format("{} [{} x {}]", p.name, options.tokens, p.n),
                  fmt::format("{} tiles in {} waves leave {:.0f} % of the device idle", q.tiles,
                              q.waves, 100 * (1 - q.efficiency)),
                  "a larger micro-batch");
  }
  return linter.take();
}

}  // namespace brrr
