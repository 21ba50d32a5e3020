// An optimizer from outside the library, as CONTRIBUTING.md shows it: it trains, fuses, checkpoints and
// reports like the built-in ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/loss/losses.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/optim/optimizer.h"
#include "brrr/runtime/compile.h"
#include "support/counter_values.h"
#include "support/error_of.h"

// Adamax: Adam with the largest gradient so far in the place of the root of squares.
//   m = b1 m + (1 - b1) g;  u = max(b2 u, |g| + eps);  p -= rate m / (u (1 - b1^t))
class Adamax : public brrr::Optimizer {
 public:
  explicit Adamax(std::vector<brrr::NamedTensor> parameters, double weight_decay = 0)
      : Optimizer(std::move(parameters), {.weight_decay = weight_decay}),
        mean_(add_state("mean")),
        largest_(add_state("largest")) {
    count_steps();
  }
  std::string_view name() const override { return "adamax"; }

 protected:
  brrr::Tensor direction(const Update& u) override {
    const brrr::Tensor m = write(mean_, u, read(mean_, u) * 0.9 + u.gradient * 0.1);
    const brrr::Tensor size =
        write(largest_, u, maximum(read(largest_, u) * 0.999, abs(u.gradient) + 1e-8));
    return m / (size * (1.0 - pow(0.9, u.step)));
  }

 private:
  State mean_, largest_;
};

namespace brrr {
namespace {

using ::testing::ElementsAre;

struct Training {
  Tensor w = full({3, 2}, 0.5).require_grad(), b = zeros({2}).require_grad();
  Adamax optimizer{{{"w", w}, {"b", b}}, 0.1};

  Tensor step(const Tensor& x, const Tensor& y, const Tensor& rate) {
    const Tensor loss = mse(matmul(x, w) + b, y);
    optimizer.update(grad(loss, optimizer.parameters()), rate);
    return loss.detach();
  }
};

struct Data {
  Tensor x = cast(from_values(counter_values("x", 24, 1.0), {8, 3}), DType::f32);
  Tensor y = cast(from_values(counter_values("y", 16, 1.0), {8, 2}), DType::f32);
  Tensor rate = full({}, 0.05);
};

TEST(OwnOptimizer, FollowsItsRecurrence) {
  const Tensor p = full({1}, 0.5, {.dtype = DType::f64});
  Adamax optimizer({{"p", p}});
  double m = 0, u = 0, expected = 0.5;
  for (int t = 1; t <= 20; ++t) {
    const double g = std::sin(0.7 * t);
    m = 0.9 * m + 0.1 * g;
    u = std::max(0.999 * u, std::fabs(g) + 1e-8);
    expected -= 0.1 * m / (u * (1 - std::pow(0.9, t)));
    optimizer.update({full({1}, g, {.dtype = DType::f64})}, 0.1);
    ASSERT_NEAR(p.item<double>(), expected, 1e-13);
  }
}

TEST(OwnOptimizer, CompiledHasTheBitsOfEagerAndFuses) {
  const Data data;
  Training eager, compiled;
  auto step = runtime::compile([&](const Tensor& x, const Tensor& y, const Tensor& rate) {
    return compiled.step(x, y, rate);
  });
  float first = 0, last = 0;
  for (int i = 0; i < 30; ++i) {
    last = eager.step(data.x, data.y, data.rate).item<float>();
    if (i == 0) first = last;
    ASSERT_EQ(step(data.x, data.y, data.rate).item<float>(), last);
  }
  EXPECT_LT(last, 0.7F * first);
  EXPECT_EQ(compiled.w.to_vector<float>(), eager.w.to_vector<float>());

  // The update of a parameter is one kernel: the elementwise nodes of the update over the shape of w,
  // which are most of them, are fewer kernels than nodes.
  const std::array<Tensor, 3> inputs{data.x, data.y, data.rate};
  const runtime::Executable& program = step.function().executable(inputs);
  int nodes = 0;
  for (const graph::Node& node : program.graph().nodes) nodes += node.phase == graph::Phase::update;
  EXPECT_GT(nodes, 20);
  EXPECT_LT(static_cast<int>(program.kernels().kernels.size()), nodes);
  std::vector<std::string> names;
  for (const graph::StateSlot& state : program.graph().states) {
    if (state.is_written()) names.push_back(state.name);
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("w", "b", "mean.w", "mean.b", "largest.w",
                                                     "largest.b", "step"));
}

TEST(OwnOptimizer, ResumesFromItsStates) {
  const Data data;
  Training whole, first, second;
  for (int i = 0; i < 10; ++i) whole.step(data.x, data.y, data.rate);
  for (int i = 0; i < 4; ++i) first.step(data.x, data.y, data.rate);
  load_tensors(second.optimizer.named_parameters(), first.optimizer.named_parameters());
  second.optimizer.load_states(first.optimizer.states());
  for (int i = 4; i < 10; ++i) second.step(data.x, data.y, data.rate);
  EXPECT_EQ(second.w.to_vector<float>(), whole.w.to_vector<float>());
  EXPECT_NE(error_of([&] { second.optimizer.load_states({}); }).find("5 missing: mean.w"),
            std::string::npos);
}

// A rule may use what it read after it wrote: the value is that from before the step.
TEST(OwnOptimizer, ReadsTheOldValueBehindAWrite) {
  class Delayed : public Optimizer {
   public:
    explicit Delayed(std::vector<NamedTensor> parameters)
        : Optimizer(std::move(parameters)), last_(add_state("last")) {}
    std::string_view name() const override { return "delayed"; }

   protected:
    Tensor direction(const Update& u) override {
      const Tensor before = read(last_, u);
      write(last_, u, u.gradient);
      return before;
    }

   private:
    State last_;
  };
  const Tensor p = zeros({1});
  Delayed optimizer({{"p", p}});
  for (double g : {1.0, 10.0, 100.0}) optimizer.update({full({1}, g)}, 1.0);
  EXPECT_EQ(p.item<float>(), -11);
}

TEST(OwnOptimizer, Reports) {
  const Training training;
  EXPECT_EQ(training.optimizer.name(), "adamax");
  EXPECT_EQ(training.optimizer.state_bytes(), Bytes(2 * (6 + 2) * 4 + 8));
  const std::vector<Optimizer::GroupSummary> groups = training.optimizer.groups();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].name, "all others");
  EXPECT_EQ(groups[0].elements, 6);
  EXPECT_EQ(groups[0].weight_decay, 0.1);
  EXPECT_EQ(groups[1].name, "norms and biases");
  EXPECT_EQ(groups[1].elements, 2);
  EXPECT_EQ(groups[1].weight_decay, 0);
}

}  // namespace
}  // namespace brrr
