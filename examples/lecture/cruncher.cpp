// The lecture's model, trained from first principles: a stack of matrices (the Cruncher), AdaGrad,
// and an account of every byte and FLOP. `make lecture` runs it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "brrr/brrr.h"
#include "brrr/report/claims.h"
#include "brrr/report/plot.h"
#include "brrr/report/progress.h"
#include "brrr/report/table.h"

using namespace brrr;

namespace {

// ---- the model --------------------------------------------------------------------------------

// y = x W without bias. W [in, out] is normal / sqrt(in), so that y varies as much as x does.
struct Linear {
  Tensor weight;

  Linear(int64_t in, int64_t out, RandomStream& random) {
    CategoryScope scope(Category::parameter);
    weight = normal({in, out}, random, {.std = 1 / std::sqrt(static_cast<double>(in))});
    weight.require_grad();
  }
  Tensor operator()(const Tensor& x) const { return matmul(x, weight); }
};

// x [batch, dim] -> num_layers times [dim, dim] -> [dim, 1] -> y [batch]
struct Cruncher {
  std::vector<Linear> layers;
  Linear head;

  Cruncher(int64_t dim, int64_t num_layers, RandomStream& random)
      : layers(make_layers(dim, num_layers, random)), head(dim, 1, random) {}

  Tensor hidden(Tensor x) const {
    for (const Linear& layer : layers) x = layer(x);
    return x;
  }
  Tensor operator()(const Tensor& x) const { return squeeze(head(hidden(x)), -1); }

  std::vector<std::pair<std::string, Tensor>> named_parameters() const {
    std::vector<std::pair<std::string, Tensor>> named;
    for (size_t i = 0; i < layers.size(); ++i) {
      named.emplace_back(fmt::format("layers.{}.weight", i), layers[i].weight);
    }
    named.emplace_back("final.weight", head.weight);
    return named;
  }
  int64_t parameter_count() const {
    int64_t count = 0;
    for (const auto& [name, parameter] : named_parameters()) count += parameter.numel();
    return count;
  }

 private:
  static std::vector<Linear> make_layers(int64_t dim, int64_t num_layers, RandomStream& random) {
    std::vector<Linear> layers;
    for (int64_t i = 0; i < num_layers; ++i) layers.emplace_back(dim, dim, random);
    return layers;
  }
};

// ---- the optimizer ----------------------------------------------------------------------------

// g2 += g^2;  p -= lr g / sqrt(g2 + eps), eps inside the root
class AdaGrad {
 public:
  AdaGrad(const Cruncher& model, double learning_rate) : learning_rate_(learning_rate) {
    CategoryScope scope(Category::optimizer);
    for (const auto& [name, parameter] : model.named_parameters()) {
      states_.push_back({.parameter = parameter, .g2 = zeros_like(parameter)});
    }
  }

  void step() {
    constexpr double kEps = 1e-5;
    NoGrad updates_are_not_recorded;
    for (const auto& [p, g2] : states_) {
      const Tensor g = p.grad();
      g2.copy_from(g2 + square(g));
      p.copy_from(p - learning_rate_ * g * rsqrt(g2 + kEps));
    }
  }
  void clear_grads() {
    for (const State& state : states_) state.parameter.clear_grad();
  }

 private:
  struct State {
    Tensor parameter, g2;
  };
  double learning_rate_;
  std::vector<State> states_;
};

// ---- the data: y = x . true_w with true_w = 0, 1, 2, ... --------------------------------------

struct Batch {
  Tensor x, y;
};

Batch draw_batch(int64_t rows, const Tensor& true_w, RandomStream& random) {
  CategoryScope scope(Category::data);
  const Tensor x = normal({rows, true_w.dim(0)}, random);
  return {x, matmul(x, true_w)};
}

Tensor loss_of(const Cruncher& model, const Batch& batch) {
  return mean(square(model(batch.x) - batch.y));
}

// ---- part 1: its parameters -------------------------------------------------------------------

bool show_parameters(Random& random) {
  const Cruncher model(64, 2, random.stream("init"));
  report::Table table({"parameter", "shape", "elements", "bytes"},
                      "The Cruncher with dim 64 and 2 layers");
  std::vector<int64_t> sizes;
  for (const auto& [name, parameter] : model.named_parameters()) {
    table.row(name, to_text(parameter.shape()), with_commas(parameter.numel()), parameter.bytes());
    sizes.push_back(parameter.numel());
  }
  table.rule();
  table.row("", "", with_commas(model.parameter_count()), Bytes(4 * model.parameter_count()));
  fmt::print("{}\n", table.text());
  const Shape output = model(ones({8, 64})).shape();
  const bool good = sizes == std::vector<int64_t>{4096, 4096, 64} &&
                    model.parameter_count() == 8256 && output == Shape{8};
  fmt::print("  [8, 64] goes in, {} comes out{}\n\n", to_text(output),
             good ? "" : "; these are not the lecture's sizes");
  return good;
}

// ---- part 2: what a step costs ----------------------------------------------------------------

// The change of a ledger account since this was made.
class Account {
 public:
  explicit Account(Category category) : category_(category), before_(ledger().live(category)) {}
  Bytes change() const { return ledger().live(category_) - before_; }

 private:
  Category category_;
  Bytes before_;
};

bool show_costs(Random& random) {
  constexpr int64_t B = 2, D = 4, L = 2;
  constexpr int64_t kParameters = D * D * L + D;
  const Account parameters(Category::parameter), gradients(Category::gradient);
  const Account state(Category::optimizer), activations(Category::activation);
  const Cruncher model(D, L, random.stream("init"));
  AdaGrad optimizer(model, 0.01);
  const Batch batch = draw_batch(B, arange(0, D, 1, {}), random.stream("data"));

  CostCounter forward;
  const Tensor hidden = model.hidden(batch.x);
  const Bytes hidden_bytes = activations.change();
  const Tensor loss = mean(square(squeeze(model.head(hidden), -1) - batch.y));
  const Bytes rest_bytes = activations.change() - hidden_bytes;
  const int64_t forward_flops = forward.contractions().flops;
  CostCounter backward;
  loss.backward();
  const int64_t backward_flops = backward.contractions().flops;

  report::Claims bytes("Memory of a step: B 2, D 4, L 2, AdaGrad, f32; formula beside the ledger");
  bytes.equal("parameters    4 (D D L + D)", parameters.change(), Bytes(4 * kParameters));
  bytes.equal("activations   4 B D L", hidden_bytes, Bytes(4 * B * D * L));
  bytes.equal("gradients     4 (D D L + D)", gradients.change(), Bytes(4 * kParameters));
  bytes.equal("optimizer g2  4 (D D L + D)", state.change(), Bytes(4 * kParameters));
  bytes.equal("together", parameters.change() + hidden_bytes + gradients.change() + state.change(),
              496_B);
  fmt::print("{}", bytes.text());
  fmt::print(
      "  The formula leaves out the data x and y ({}), and the error and the loss that the tape "
      "keeps\n"
      "  after the last layer ({}). The ledger counts them too.\n\n",
      to_text(batch.x.bytes() + batch.y.bytes()), to_text(rest_bytes));

  // The same step with x.grad, which the rule of 6 counts.
  batch.x.require_grad();
  CostCounter full;
  loss_of(model, batch).backward();
  report::Claims flops("FLOPs of its matrix products; formula beside the count");
  flops.equal("forward                   2 B parameters", forward_flops, 2 * B * kParameters);
  flops.equal("backward                  4 B parameters - 2 B D D", backward_flops,
              4 * B * kParameters - 2 * B * D * D);
  flops.equal("both, with x.grad as well 6 B parameters", full.contractions().flops, 432);
  fmt::print("{}", flops.text());
  fmt::print(
      "  432 is the convention: it counts the gradient of x, 2 B D D = 64, which no training "
      "needs.\n"
      "  What runs is {}.\n\n",
      forward_flops + backward_flops);
  return bytes.all_hold() && flops.all_hold();
}

// ---- part 3: training -------------------------------------------------------------------------

struct Settings {
  int64_t steps = 80000;
  int64_t batch = 64;
  int64_t dim = 16;
  int64_t layers = 2;
  double learning_rate = 0.0015;
  uint64_t seed = 0;
};

std::vector<double> train(const Cruncher& model, const Tensor& true_w, const Settings& settings,
                          Random& random) {
  AdaGrad optimizer(model, settings.learning_rate);
  std::vector<double> losses;
  report::Progress progress(settings.steps);
  for (int64_t step = 0; step < settings.steps; ++step) {
    const Tensor loss = loss_of(model, draw_batch(settings.batch, true_w, random.stream("data")));
    loss.backward();
    optimizer.step();
    optimizer.clear_grads();
    losses.push_back(loss.item<double>());
    if (progress.is_due(step + 1))
      progress.update(step + 1, fmt::format("loss {:<9.3g}", losses.back()));
  }
  return losses;
}

// All layers are linear, so their product is one weight for each input: it should be true_w.
Tensor learned_weights(const Cruncher& model) {
  NoGrad scope;
  Tensor w = model.head.weight;
  for (size_t i = model.layers.size(); i-- > 0;) w = matmul(model.layers[i].weight, w);
  return squeeze(w, -1);
}

void show_weights(const Cruncher& model, const Tensor& true_w) {
  constexpr int64_t kShown = 16;
  const std::vector<double> truth = true_w.to_vector<double>(),
                            learned = learned_weights(model).to_vector<double>();
  std::vector<std::string> header{"input"}, true_row{"true"}, learned_row{"learned"};
  for (size_t i = 0; i < std::min<size_t>(truth.size(), kShown); ++i) {
    header.push_back(fmt::format("{}", i));
    true_row.push_back(fmt::format("{:g}", truth[i]));
    learned_row.push_back(fmt::format("{:.1f}", std::abs(learned[i]) < 0.05 ? 0 : learned[i]));
  }
  report::Table table(header);
  table.add_row(true_row).add_row(learned_row);
  fmt::print("{}", table.text());
  if (std::ssize(truth) > kShown) fmt::print("  and {} more\n", std::ssize(truth) - kShown);
}

void show_memory() {
  report::Table table({"memory", "peak"});
  for (int c = 0; c < kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    if (ledger().peak(category) > 0_B) table.row(category_name(category), ledger().peak(category));
  }
  table.rule();
  table.row("all at once", ledger().peak());
  fmt::print("\n{}", table.text());
}

double mean_of(std::span<const double> values) {
  double total = 0;
  for (double value : values) total += value;
  return total / static_cast<double>(values.size());
}

// Training must bring the loss down: the last tenth of the steps against the first.
bool did_learn(std::span<const double> losses) {
  constexpr size_t kTooShortToTell = 100;
  if (losses.size() < kTooShortToTell) return std::isfinite(losses.back());
  const size_t tenth = losses.size() / 10;
  return mean_of(losses.last(tenth)) < mean_of(losses.first(tenth));  // false for NaN
}

bool run_training(const Settings& settings, Random& random) {
  const Tensor true_w = arange(0, static_cast<double>(settings.dim), 1, {});
  const Cruncher model(settings.dim, settings.layers, random.stream("init"));
  fmt::print(
      "Training: y = x . (0, 1, 2, ...), dim {}, {} layers, {} parameters, batch {}, AdaGrad, lr "
      "{:g}\n",
      settings.dim, settings.layers, with_commas(model.parameter_count()), settings.batch,
      settings.learning_rate);
  ledger().reset_peak();
  const std::vector<double> losses = train(model, true_w, settings, random);
  fmt::print("\n{}\n", report::line_plot(losses, {.title = "  mean squared error", .log_y = true}));
  show_weights(model, true_w);
  show_memory();
  if (did_learn(losses)) return true;
  fmt::print("  The loss did not come down; try a smaller --lr.\n");
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Trains the lecture's Cruncher and accounts for its memory and FLOPs");
  app.option_defaults()->always_capture_default();
  app.add_option("--steps", settings.steps, "training steps")->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--lr", settings.learning_rate, "learning rate of AdaGrad")
      ->check(CLI::Range(1e-9, 1e9));
  app.add_option("--dim", settings.dim, "inputs, and width of every layer")
      ->check(CLI::Range(1, 16384));
  app.add_option("--layers", settings.layers, "hidden layers; 0 is a linear model")
      ->check(CLI::Range(0, 1000));
  app.add_option("--batch", settings.batch, "rows of a step")->check(CLI::Range(1, 1'000'000));
  app.add_option("--seed", settings.seed, "seed of weights and data");
  CLI11_PARSE(app, argc, argv);
  try {
    Random random(settings.seed);
    const bool good[] = {show_parameters(random), show_costs(random),
                         run_training(settings, random)};
    return std::ranges::count(good, false) == 0 ? 0 : 1;
  } catch (const Error& error) {
    fmt::print(stderr, "cruncher: {}\n", error.what());
    return 1;
  }
}
