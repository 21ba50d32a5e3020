// Optimizers against their recurrences, computed here in double precision one number at a time.
#include "brrr/optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "brrr/ops/create/creation.h"
#include "support/error_of.h"

namespace brrr {
namespace {

double gradient_at(int step, double p) { return std::sin(step * 0.7) + 0.3 * p; }

// Runs 20 steps on one matrix of one element, so that weight decay applies.
template <typename MakeOptimizer, typename Reference>
void expect_recurrence(MakeOptimizer make, Reference reference) {
  const Tensor p = full({1, 1}, 0.5);
  const std::unique_ptr<Optimizer> optimizer = make(std::vector<NamedTensor>{{"p", p}});
  double expected = 0.5;
  for (int step = 1; step <= 20; ++step) {
    const double g = gradient_at(step, p.item<double>());
    reference(step, g, expected);
    optimizer->update({full({1, 1}, g)}, 0.05);
    ASSERT_NEAR(p.item<double>(), expected, 2e-6) << "step " << step;
  }
}

TEST(Optimizer, AdamW) {
  double m = 0, v = 0;
  expect_recurrence(
      [](std::vector<NamedTensor> p) {
        return std::make_unique<AdamW>(std::move(p), AdamWOptions{.weight_decay = 0.1});
      },
      [&](int step, double g, double& p) {
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        const double m_hat = m / (1 - std::pow(0.9, step)), v_hat = v / (1 - std::pow(0.999, step));
        p -= 0.05 * (m_hat / (std::sqrt(v_hat) + 1e-8) + 0.1 * p);
      });
}

TEST(Optimizer, SgdWithMomentum) {
  for (bool nesterov : {false, true}) {
    double velocity = 0;
    expect_recurrence(
        [&](std::vector<NamedTensor> p) {
          return std::make_unique<Sgd>(
              std::move(p),
              SgdOptions{.momentum = 0.9, .nesterov = nesterov, .weight_decay = 0.01});
        },
        [&](int, double g, double& p) {
          g += 0.01 * p;
          velocity = 0.9 * velocity + g;
          p -= 0.05 * (nesterov ? g + 0.9 * velocity : velocity);
        });
  }
}

TEST(Optimizer, NormsAndBiasesDoNotDecay) {
  const Tensor bias = full({3}, 1.0);
  AdamW optimizer({{"bias", bias}}, {.weight_decay = 0.5});
  optimizer.update({zeros({3})}, 0.1);
  EXPECT_EQ(bias.to_vector<float>(), (std::vector<float>{1, 1, 1}));
}

TEST(Optimizer, ClipsTheCommonNorm) {
  std::vector<Tensor> grads{tensor({3, 0}), tensor({0, 4})};
  EXPECT_NEAR(clip_global_norm(grads, 1.0).item<double>(), 5, 1e-6);
  EXPECT_NEAR(grads[0].to_vector<double>()[0], 0.6, 1e-6);
  EXPECT_NEAR(grads[1].to_vector<double>()[1], 0.8, 1e-6);
  std::vector<Tensor> small{tensor({0.3, 0.4})};
  clip_global_norm(small, 1.0);
  EXPECT_NEAR(small[0].to_vector<double>()[0], 0.3, 1e-7);
}

TEST(Optimizer, RefusesWhatDoesNotMatch) {
  AdamW optimizer({{"w", zeros({2, 2})}});
  EXPECT_NE(error_of([&] { optimizer.update({}, 0.1); }).find("0 gradients for 1"),
            std::string::npos);
  EXPECT_NE(error_of([&] { optimizer.update({zeros({3})}, 0.1); }).find("gradient of w"),
            std::string::npos);
  EXPECT_NE(error_of([] { Sgd none(std::vector<NamedTensor>{}); }).find("at least one"),
            std::string::npos);
}

}  // namespace
}  // namespace brrr
