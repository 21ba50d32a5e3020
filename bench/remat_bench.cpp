// Keeping against computing again. Two tables:
//   - a chain of pointwise ops and norms: bytes and time when everything is kept, when the minimum cut
//     chooses without a budget, and when everything runs again
//   - a GPT-2-shaped step at 60 % of the activation bytes that keeping everything needs, and at the
//     tightest budget, against keeping everything
// Variants take turns call by call, so that a drift of the machine meets all of them.
//   remat_bench [chain | gpt [LAYERS [ROUNDS [unclipped]]]]
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "brrr/optim/clip.h"
#include "brrr/report/table.h"
#include "harness.h"

namespace {

using namespace brrr;

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// One way to run the same function.
struct Variant {
  std::string name;
  std::function<float()> run;  // returns the loss
  const runtime::Executable* program;
  std::vector<double> seconds;
  float loss = 0;

  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

void measure(std::vector<Variant>& variants, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    for (Variant& variant : variants) {
      const auto start = std::chrono::steady_clock::now();
      variant.run();
      variant.seconds.push_back(since(start));
    }
  }
}

int64_t kept_bytes(const runtime::Executable& program) {
  int64_t total = 0;
  for (const compiler::KeptValue& kept : compiler::kept_values(program.graph()))
    total += kept.bytes;
  return total;
}

// The first variant is what the others are compared with, round by round.
std::string table_of(const std::vector<Variant>& variants, const char* title) {
  report::Table table({"", "moved", "kept", "arena", "kernels", "ms", "times the first", "loss"},
                      title);
  for (const Variant& variant : variants) {
    std::vector<double> ratios;
    for (size_t i = 0; i < variant.seconds.size(); ++i)
      ratios.push_back(variant.seconds[i] / variants[0].seconds[i]);
    std::sort(ratios.begin(), ratios.end());
    const Cost cost = variant.program->cost();
    table.row(
        variant.name, Bytes(cost.bytes_read + cost.bytes_written),
        Bytes(kept_bytes(*variant.program)), Bytes(variant.program->plan().arena_bytes),
        variant.program->kernels().kernels.size(), fmt::format("{:.3f}", 1e3 * variant.median()),
        fmt::format("{:.3f}", ratios[ratios.size() / 2]), fmt::format("{:.9g}", variant.loss));
  }
  return table.text();
}

// ---- the chain ----
constexpr int64_t kRows = 8192, kWidth = 1024;

struct Chain {
  Tensor x = bench::random_tensor({kRows, kWidth}, "x"), a = ones({kWidth}), b = zeros({kWidth}),
         weight = ones({kWidth}), bias = zeros({kWidth});
  std::vector<Tensor> leaves{x, a, b, weight, bias};

  Chain() {
    for (const Tensor& leaf : leaves) leaf.require_grad();
  }
  Tensor forward(const Tensor& given) const {
    Tensor h = layer_norm(given, weight, bias);
    h = gelu(h * a + b) * sigmoid(h);
    h = layer_norm(h + given, weight, bias);
    return tanh(h * a) * exp(-square(h) * 0.5) + h;
  }
  // The gradient of the loss depends on its value, as behind a real model. The mark is for the policy
  // `full` alone.
  Tensors step(compiler::RematPolicy policy) const {
    const auto run = [this](const Tensor& given) { return forward(given); };
    const Tensor y = policy == compiler::RematPolicy::full ? checkpoint(run, x) : run(x);
    const Tensor loss = log(mean(square(y)));
    Tensors results{loss};
    for (const Tensor& g : grad(loss, leaves)) results.push_back(sum(g));
    return results;
  }
};

void run_chain() {
  const Chain chain;
  const auto make = [&](const char* name, compiler::RematPolicy policy) {
    auto compiled = std::make_shared<runtime::CompiledFunction>(
        [&chain, policy](std::span<const Tensor>) { return chain.step(policy); },
        compiler::PipelineOptions{.remat = {.policy = policy}});
    return Variant{.name = name,
                   .run = [compiled] { return compiled->run({})[0].item<float>(); },
                   .program = &compiled->executable({}),
                   .seconds = {}};
  };
  std::vector<Variant> variants{make("keep all", compiler::RematPolicy::none),
                                make("min-cut", compiler::RematPolicy::budget),
                                make("recompute all", compiler::RematPolicy::full)};
  for (Variant& variant : variants) variant.loss = variant.run();
  measure(variants, 15);
  std::fputs(
      table_of(variants, "pointwise and norms, f32[8192, 1024], forward and backward").c_str(),
      stdout);
}

// ---- the model ----
constexpr int64_t kBatch = 1, kSeq = 1024, kVocab = 50304;

// One model for all variants, put back to where it began before each: their losses must be equal.
struct Training {
  Random random{1};
  Gpt2 model;
  AdamW optimizer{model.named_parameters()};
  std::vector<Tensor> initial;
  Tensor tokens = randint({kBatch, kSeq}, random.stream("data"), 0, kVocab),
         targets = randint({kBatch, kSeq}, random.stream("data"), 0, kVocab);

  bool clips;

  Training(int64_t layers, bool with_clipping)
      : model({.vocab = kVocab, .context = kSeq, .layers = layers}, random), clips(with_clipping) {
    for (const Tensor& x : model.parameters()) initial.push_back(clone(x.detach()));
  }
  void reset() const {
    const NoGrad writing;
    const std::vector<Tensor> parameters = model.parameters();
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_from(initial[i]);
    for (const NamedTensor& state : optimizer.states()) state.tensor.fill(0);
  }
  Tensors step(std::span<const Tensor> batch) {
    const Tensor loss = model.loss(batch[0], batch[1]);
    std::vector<Tensor> grads = grad(loss, optimizer.parameters());
    // As training does: then no update runs before all gradients are there.
    if (clips) clip_global_norm(grads, 1.0);
    optimizer.update(grads, 1e-4);
    return {loss.detach()};
  }
};

Variant make_variant(Training& training, const char* name, const compiler::RematOptions& remat) {
  auto compiled = std::make_shared<runtime::CompiledFunction>(
      [&training](std::span<const Tensor> batch) { return training.step(batch); },
      compiler::PipelineOptions{.remat = remat});
  const Tensor batch[] = {training.tokens, training.targets};
  const auto start = std::chrono::steady_clock::now();
  const runtime::Executable& program = compiled->executable(batch);
  std::printf("%s: compiled in %.2f s\n", name, since(start));
  return {.name = name,
          .run =
              [&training, compiled] {
                const Tensor inputs[] = {training.tokens, training.targets};
                return compiled->run(inputs)[0].item<float>();
              },
          .program = &program,
          .seconds = {}};
}

// All that crosses, but for the logits, which are at the peak whether kept or made again.
int64_t activation_bytes(const runtime::Executable& program) {
  int64_t total = 0;
  for (const compiler::KeptValue& kept : compiler::kept_values(program.graph())) {
    const Shape& shape = program.graph().type(kept.value).shape;
    if (shape.empty() || shape[shape.size() - 1] != kVocab) total += kept.bytes;
  }
  return total;
}

void run_gpt(int64_t layers, int rounds, bool clips) {
  Training training(layers, clips);
  std::vector<Variant> variants;
  variants.push_back(make_variant(training, "keep all", {.policy = compiler::RematPolicy::none}));
  const runtime::Executable& all = *variants[0].program;
  const int64_t activations = activation_bytes(all);
  const int64_t budget = all.plan().arena_bytes - activations * 2 / 5;
  std::printf("activations (logits excluded) %s; arena %s; budget %s\n",
              to_text(Bytes(activations)).c_str(), to_text(Bytes(all.plan().arena_bytes)).c_str(),
              to_text(Bytes(budget)).c_str());
  variants.push_back(make_variant(training, "no budget", {}));
  variants.push_back(
      make_variant(training, "60 % of activations", {.memory_budget = Bytes(budget)}));
  variants.push_back(
      make_variant(training, "selective", {.policy = compiler::RematPolicy::selective}));
  variants.push_back(make_variant(training, "full", {.policy = compiler::RematPolicy::full}));
  for (Variant& variant : variants) {  // the loss of the second step: it has seen the gradients
    training.reset();
    variant.run();
    variant.loss = variant.run();
  }
  measure(variants, rounds);
  std::fputs(table_of(variants, "GPT-2, 768 wide, 1 x 1024 tokens, AdamW").c_str(), stdout);
}

}  // namespace

int main(int argc, char** argv) {
  set_num_threads(brrr::bench::kThreads);
  const char* which = argc > 1 ? argv[1] : "";
  if (std::strcmp(which, "gpt") != 0) run_chain();
  if (std::strcmp(which, "chain") != 0)
    run_gpt(argc > 2 ? std::atoi(argv[2]) : 12, argc > 3 ? std::atoi(argv[3]) : 5, argc <= 4);
  return 0;
}
