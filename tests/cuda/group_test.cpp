// Kernels side by side on a GPU give the bits that they give one by one: norms of gradients, clipping and
// updates of many tensors, small, large and odd.
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/views.h"
#include "brrr/optim/optimizer.h"
#include "brrr/runtime/compile.h"
#include "brrr/runtime/cuda/cuda_program.h"
#include "cuda/gpu.h"

namespace brrr {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};

Tensor values(const Shape& shape, uint32_t draw, DType dtype = DType::f32) {
  return cast(normal(shape, RandomKey{.seed = 17, .stream = 3, .draw = draw}), dtype);
}

std::vector<double> numbers(const Tensor& x) { return to(x, Device::cpu()).to_vector<double>(); }

void expect_same_bits(const Tensor& a, const Tensor& b, size_t which) {
  const std::vector<double> x = numbers(a), y = numbers(b);
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], y[i]) << "tensor " << which << " at " << i;
}

compiler::PipelineOptions options_of(std::string_view left_out) {
  compiler::PipelineOptions options;
  options.device = kGpu;
  return compiler::without(options, left_out);
}

// One element, fewer than a pack, around the borders of warps, blocks and parts of a sum, and no multiple of
// anything; vectors and matrices, so that some decay and some do not.
const std::vector<Shape> kShapes{
    {1},    {7},       {31},        {32},     {33},        {255},        {256},      {257},
    {384},  {1023},    {2047},      {2048},   {2049},      {3, 683},     {4095},     {8191},
    {8192}, {8193},    {5, 5},      {16'385}, {65, 384},   {384, 384},   {384},      {384},
    {1536}, {1},       {7, 11, 13}, {7},      {1'000'003}, {384, 384},   {1024},     {3, 7919},
    {100},  {768, 11}, {2},         {1, 1},   {384},       {1000, 1000}, {129, 257}, {64}};

// Parameters, gradients and a step that clips, as programs train.
struct Trained {
  std::vector<NamedTensor> parameters;
  std::vector<Tensor> grads;

  Trained() {
    for (size_t i = 0; i < kShapes.size(); ++i) {
      const auto draw = static_cast<uint32_t>(i);
      parameters.push_back({join_text("p", i), to(values(kShapes[i], draw), kGpu)});
      grads.push_back(to(values(kShapes[i], 1000 + draw), kGpu));
    }
  }
};

template <typename Rule, typename Options>
void expect_bits_of_one_by_one(const Options& rule) {
  Trained grouped, apart;
  Rule grouped_rule(grouped.parameters, rule), apart_rule(apart.parameters, rule);
  const auto step = [](Trained& trained, Optimizer& optimizer, std::string_view left_out) {
    return runtime::compile(
        [&trained, &optimizer](const Tensor& rate) {
          NoGrad update_only;
          std::vector<Tensor> grads;
          for (const Tensor& g : trained.grads) grads.push_back(g * rate);
          const Tensor norm = clip_global_norm(grads, 1.0);
          optimizer.update(grads, rate);
          return norm;
        },
        options_of(left_out));
  };
  auto one = step(grouped, grouped_rule, ""), other = step(apart, apart_rule, "group_kernels");
  for (int run = 0; run < 5; ++run) {  // by launches, captured, replayed
    const Tensor rate = to(tensor(0.01 * (run + 1)), kGpu);
    expect_same_bits(other(rate), one(rate), 1000);
  }
  for (size_t i = 0; i < grouped.parameters.size(); ++i)
    expect_same_bits(apart.parameters[i].tensor, grouped.parameters[i].tensor, i);
  const std::vector<NamedTensor>&a = grouped_rule.states(), &b = apart_rule.states();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) expect_same_bits(a[i].tensor, b[i].tensor, i);
  const Tensor rate = to(tensor(0.01), kGpu);
  const size_t few = one.function().executable({{rate}}).kernels().kernels.size(),
               many = other.function().executable({{rate}}).kernels().kernels.size();
  EXPECT_LE(few, 6U);
  EXPECT_GE(many, 2 * kShapes.size());
}

TEST(CudaGroup, AdamWGivesTheBitsOfKernelsOneByOne) {
  BRRR_NEEDS_GPU();
  expect_bits_of_one_by_one<AdamW>(AdamWOptions{.weight_decay = 0.1});
}

TEST(CudaGroup, MomentumGivesTheBitsOfKernelsOneByOne) {
  BRRR_NEEDS_GPU();
  expect_bits_of_one_by_one<Sgd>(SgdOptions{.momentum = 0.9, .weight_decay = 0.01});
}

// The same rule on both devices: parameters and states after five steps.
template <typename Rule, typename Options>
void expect_like_the_cpu(const Options& options, double tolerance) {
  const auto train = [&](Device device) {
    std::vector<NamedTensor> parameters;
    std::vector<Tensor> grads;
    for (size_t i = 0; i < 4; ++i) {
      const Shape shape = i % 2 == 0 ? Shape{48, 32} : Shape{50};
      parameters.push_back(
          {join_text("p", i), to(values(shape, 300 + static_cast<uint32_t>(i)), device)});
      grads.push_back(to(values(shape, 400 + static_cast<uint32_t>(i)), device));
    }
    Rule rule(parameters, options);
    auto step = runtime::compile([&](const Tensor& rate) {
      NoGrad update_only;
      std::vector<Tensor> scaled;
      for (const Tensor& g : grads) scaled.push_back(g * rate);
      const Tensor norm = clip_global_norm(scaled, 1.0);
      rule.update(scaled, rate);
      return norm;
    });
    for (int run = 0; run < 5; ++run) step(to(tensor(0.01 * (run + 1)), device));
    std::vector<Tensor> all;
    for (const std::vector<NamedTensor>& named : {parameters, rule.states()}) {
      for (const NamedTensor& each : named)
        all.push_back(cast(to(each.tensor, Device::cpu()), DType::f64));
    }
    return all;
  };
  const std::vector<Tensor> expected = train(Device::cpu()), got = train(kGpu);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::sqrt(sum(square(got[i] - expected[i])).item<double>() /
                                   std::max(1e-30, sum(square(expected[i])).item<double>()));
    EXPECT_LE(error, tolerance) << "tensor " << i;
  }
}

// Newton-Schulz steps are products: sums in another order.
TEST(CudaGroup, MuonIsThatOfTheCpu) {
  BRRR_NEEDS_GPU();
  expect_like_the_cpu<Muon>(MuonOptions{}, 1e-3);
}

// The chance by which a moment is rounded is a function of step and place, the same on both devices; a moment that is
// off by a last bit of f32 rarely rounds the other way.
TEST(CudaGroup, StatesThatAreRoundedByChanceAreThoseOfTheCpu) {
  BRRR_NEEDS_GPU();
  AdamWOptions options;
  options.state_precision = StatePrecision::bf16;
  expect_like_the_cpu<AdamW>(options, 1e-4);
}

Tensors norms_of(std::span<const Tensor> x) {
  Tensors norms;
  for (const Tensor& each : x) norms.push_back(sum(square(each)));
  return norms;
}

// The bits of a sum depend neither on who is beside it nor on the run, and the sum is right.
TEST(CudaGroup, SumsDoNotDependOnTheirNeighbours) {
  BRRR_NEEDS_GPU();
  std::vector<Tensor> all;
  for (size_t i = 0; i < kShapes.size(); ++i)
    all.push_back(to(
        values(kShapes[i], static_cast<uint32_t>(2000 + i), i % 3 == 2 ? DType::bf16 : DType::f32),
        kGpu));
  const auto run_on = [](const std::vector<Tensor>& x, std::string_view left_out) {
    runtime::CompiledFunction f([](std::span<const Tensor> given) { return norms_of(given); },
                                options_of(left_out));
    std::vector<std::vector<double>> results;
    for (int run = 0; run < 4; ++run) {
      std::vector<double> sums;
      for (const Tensor& sum : f.run(x)) sums.push_back(numbers(sum)[0]);
      results.push_back(std::move(sums));
    }
    for (const std::vector<double>& sums : results) EXPECT_EQ(sums, results[0]);
    return results[0];
  };
  const std::vector<double> joined = run_on(all, ""), apart = run_on(all, "group_kernels");
  EXPECT_EQ(joined, apart);
  for (const size_t count : {size_t{1}, size_t{2}, size_t{9}, size_t{30}}) {
    const std::vector<Tensor> some(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
    EXPECT_EQ(
        run_on(some, ""),
        std::vector<double>(joined.begin(), joined.begin() + static_cast<std::ptrdiff_t>(count)));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    double exact = 0;
    for (const double x : numbers(all[i])) exact += x * x;
    // bf16 squares are rounded to 8 bits each.
    EXPECT_NEAR(joined[i], exact, (i % 3 == 2 ? 1e-2 : 1e-5) * exact) << i;
  }
}

TEST(CudaGroup, SumsOfUnalignedViews) {
  BRRR_NEEDS_GPU();
  const Tensor base = values({40'003}, 1), there = to(base, kGpu);
  const auto f = [](const Tensor& x) {
    Tensors norms;
    for (const int64_t start : {0, 1, 2, 3, 5, 8})
      norms.push_back(sum(square(slice(x, 0, {start, start + 33'333 + start}))));
    return norms;
  };
  auto cpu = runtime::compile(f), one = runtime::compile(f, options_of("")),
       other = runtime::compile(f, options_of("group_kernels"));
  const Tensors expected = cpu(base);
  for (int run = 0; run < 3; ++run) {
    const Tensors joined = one(there), apart = other(there);
    for (int i = 0; i < expected.size(); ++i) {
      expect_same_bits(apart[i], joined[i], static_cast<size_t>(i));
      EXPECT_NEAR(numbers(joined[i])[0], numbers(expected[i])[0], 1e-5 * numbers(expected[i])[0]);
    }
  }
}

// Rows, columns and whole tensors, with and without more behind the sum, in the launches of one kernel.
TEST(CudaGroup, ReductionsOfAllKindsSideBySide) {
  BRRR_NEEDS_GPU();
  const Tensor x = values({700, 96}, 5), y = values({3, 5000}, 6), z = values({4097, 3}, 7);
  const auto f = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    return Tensors{sum(square(a), {0}), sqrt(mean(abs(a), {1})), sum(square(b), {1}),
                   max(b * 2.0),        sum(exp(c)) * 0.5,       min(abs(c), {0})};
  };
  auto cpu = runtime::compile(f), one = runtime::compile(f, options_of("")),
       other = runtime::compile(f, options_of("group_kernels"));
  const Tensors expected = cpu(x, y, z);
  const Tensor gx = to(x, kGpu), gy = to(y, kGpu), gz = to(z, kGpu);
  for (int run = 0; run < 3; ++run) {
    const Tensors joined = one(gx, gy, gz), apart = other(gx, gy, gz);
    for (int i = 0; i < expected.size(); ++i) {
      expect_same_bits(apart[i], joined[i], static_cast<size_t>(i));
      const std::vector<double> got = numbers(joined[i]), right = numbers(expected[i]);
      for (size_t e = 0; e < right.size(); ++e)
        ASSERT_NEAR(got[e], right[e], 1e-5 * (1 + std::abs(right[e]))) << i << " at " << e;
    }
  }
  const size_t joined = one.function().executable({{gx, gy, gz}}).kernels().kernels.size(),
               apart = other.function().executable({{gx, gy, gz}}).kernels().kernels.size();
  EXPECT_LT(joined, apart);
}

// As many parts as one launch takes, fewer and more, along every axis, with empty ones among them.
TEST(CudaGroup, ManySmallPartsAreJoinedInOrder) {
  BRRR_NEEDS_GPU();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::boolean}) {
    for (const int64_t count : {5, 76, 240, 241, 600}) {
      for (const int64_t axis : {0, 1}) {
        std::vector<Tensor> here, there;
        for (int64_t i = 0; i < count; ++i) {
          const int64_t size = i % 11 == 4 ? 0 : 1 + i % 5;
          here.push_back(
              values(axis == 0 ? Shape{size, 3} : Shape{3, size}, static_cast<uint32_t>(i), dtype));
          there.push_back(to(here.back(), kGpu));
        }
        expect_same_bits(concat(here, axis), concat(there, axis), static_cast<size_t>(count));
      }
    }
  }
}

}  // namespace
}  // namespace brrr
