// Double descent in a network: one hidden layer, labels of which some are wrong, sizes from tiny to large.
//   double_descent_network           some seconds
//   double_descent_network --full    more repetitions and steps; the SVG of docs/from-scratch.md
//
// Small networks cannot fit the wrong labels and ignore them. With about as many parameters as samples a
// network can just fit all labels, with weights that must be large, and it is wrong in between. Larger ones
// fit the same labels with smaller weights, and do better on new data.
#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "brrr/brrr.h"
#include "brrr/io/atomic_file.h"
#include "brrr/report/claims.h"
#include "brrr/report/plot.h"
#include "brrr/report/svg_plot.h"
#include "brrr/report/table.h"

using namespace brrr;

namespace {

constexpr int64_t kSamples = 160, kTest = 1000, kInputs = 8;
constexpr double kWrongLabels = 0.2;

struct Problem {
  Tensor x, y, test_x, test_y;  // labels are -1 and 1
};

// The class is the sign of a smooth function; a part of the training labels is turned round.
Problem draw_problem(RandomStream& random) {
  const Tensor a = normal({kInputs, 1}, random), b = normal({kInputs, 1}, random);
  const auto label = [&](const Tensor& x) { return sign(tanh(matmul(x, a)) + tanh(matmul(x, b))); };
  const Tensor x = normal({kSamples, kInputs}, random), test_x = normal({kTest, kInputs}, random);
  const Tensor turned = 1 - 2 * bernoulli({kSamples, 1}, random, kWrongLabels);
  return {x, label(x) * turned, test_x, label(test_x)};
}

struct Result {
  double train_error = 0, test_error = 0, test_loss = 0, norm = 0;
};

Result train(const Problem& problem, int64_t width, int64_t steps, uint64_t seed) {
  Random random(seed);
  Sequential net;
  net.add<Linear>(kInputs, width, random, LinearOptions{.init = Init::kaiming_normal()})
      .add<Function>([](const Tensor& x) { return relu(x); })
      .add<Linear>(width, 1, random, LinearOptions{.init = Init::kaiming_normal()});
  AdamW optimizer(net.trainable_parameters(),
                  {.weight_decay = 0});  // nothing keeps the weights small
  const Schedule schedule({.rate = 1e-2, .steps = steps, .final_share = 0.01});
  auto step = compile([&](const Tensor& number) {
    const Tensor loss = mse(net(problem.x), problem.y);
    optimizer.update(grad(loss, optimizer.parameters()), schedule.at(number));
    return loss;
  });
  for (int64_t n = 0; n < steps; ++n) step(full({}, static_cast<double>(n)));

  NoGrad no_tape;
  const auto wrong = [&](const Tensor& x, const Tensor& y) {
    return mean(cast(not_equal(sign(net(x)), y), DType::f32)).item<double>();
  };
  double squares = 0;
  for (const NamedTensor& parameter : net.named_parameters())
    squares += sum(square(parameter.tensor)).item<double>();
  return {
      wrong(problem.x, problem.y), wrong(problem.test_x, problem.test_y),
      mse(net(problem.test_x), problem.test_y).item<double>(),
      // Weights for each hidden unit: without this a wider network has a larger norm by counting alone.
      std::sqrt(squares / static_cast<double>(width))};
}

}  // namespace

int main(int argc, char** argv) {
  const bool full_size = argc > 1 && std::string_view(argv[1]) == "--full";
  const int repetitions = full_size ? 8 : 3;
  const int64_t steps = full_size ? 4000 : 2000;
  Random random(3);
  std::vector<Problem> problems;
  for (int i = 0; i < repetitions; ++i) problems.push_back(draw_problem(random.stream("data")));

  report::Table table(
      {"hidden", "parameters", "wrong, training", "wrong, test", "test loss",
       "norm / sqrt(hidden)"},
      fmt::format("{} samples, {:.0f} % of their labels wrong; means over {} problems{}", kSamples,
                  100 * kWrongLabels, repetitions, full_size ? "" : " (--full: 8)"));
  report::SvgCurve loss_curve{"test loss", {}}, error_curve{"wrong on test data", {}},
      norm_curve{"norm / sqrt(hidden)", {}};
  std::vector<double> losses;
  for (int64_t width : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512}) {
    Result mean;
    for (int i = 0; i < repetitions; ++i) {
      const Result one =
          train(problems[static_cast<size_t>(i)], width, steps, static_cast<uint64_t>(i));
      mean.train_error += one.train_error / repetitions;
      mean.test_error += one.test_error / repetitions;
      mean.test_loss += one.test_loss / repetitions;
      mean.norm += one.norm / repetitions;
    }
    const int64_t parameters = width * (kInputs + 2) + 1;
    table.row(width, with_commas(parameters), fmt::format("{:.1f} %", 100 * mean.train_error),
              fmt::format("{:.1f} %", 100 * mean.test_error), fmt::format("{:.3f}", mean.test_loss),
              fmt::format("{:.2f}", mean.norm));
    const auto x = static_cast<double>(parameters);
    loss_curve.points.emplace_back(x, mean.test_loss);
    error_curve.points.emplace_back(x, mean.test_error);
    norm_curve.points.emplace_back(x, mean.norm);
    losses.push_back(mean.test_loss);
  }
  fmt::print("{}\n{}\n", table.text(),
             report::line_plot(losses, {.height = 10,
                                        .title = "test loss by size, as in the table",
                                        .x_label = "parameters",
                                        .x_ends = {"11", "5,121"}}));
  write_file_atomically("double_descent_network.svg",
                        report::svg_plot({loss_curve, error_curve, norm_curve},
                                         {.title = "A network on noisy labels",
                                          .x_label = "parameters",
                                          .y_label = "loss, part wrong, norm",
                                          .log_x = true,
                                          .log_y = true,
                                          .marks = {{kSamples, "parameters = samples"}}}));
  fmt::print("drawn: double_descent_network.svg\n\n");

  const size_t peak =
      static_cast<size_t>(std::max_element(losses.begin(), losses.end()) - losses.begin());
  const double at_peak = loss_curve.points[peak].first;
  report::Claims claims("What the curve must show");
  claims.holds("the peak is where parameters are about as many as samples",
               fmt::format("{:.0f} parameters, {} samples", at_peak, kSamples),
               at_peak > kSamples / 3.0 && at_peak < kSamples * 3.0);
  claims.holds("the largest network is better than the one at the peak",
               fmt::format("{:.3f} after {:.3f}", losses.back(), losses[peak]),
               losses.back() < 0.8 * losses[peak]);
  claims.holds("and has smaller weights",
               fmt::format("{:.2f} after {:.2f}", norm_curve.points.back().second,
                           norm_curve.points[peak].second),
               norm_curve.points.back().second < norm_curve.points[peak].second);
  fmt::print("{}", claims.text());
  return claims.all_hold() ? 0 : 1;
}
