// Compiled programs on a GPU against the same programs on the CPU: fused kernels, programs side by side,
// reductions, states in place, repeats, and what the host launches for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/autodiff/grad.h"
#include "brrr/device/default_device.h"
#include "brrr/ops/control/repeat.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/loss/cross_entropy.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/norm/layer_norm.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/slice_backward.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/compile.h"
#include "cuda/gpu.h"
#include "support/error_of.h"

namespace brrr {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};

Tensor values(const Shape& shape, uint32_t draw, DType dtype = DType::f32) {
  return cast(normal(shape, RandomKey{.seed = 11, .stream = 3, .draw = draw}), dtype);
}

void expect_same_bits(const Tensor& cpu, const Tensor& gpu) {
  const std::vector<double> a = cpu.to_vector<double>(),
                            b = to(gpu, Device::cpu()).to_vector<double>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_TRUE(a[i] == b[i] || (a[i] != a[i] && b[i] != b[i])) << i << ": " << a[i] << " " << b[i];
}

void expect_close(const Tensor& cpu, const Tensor& gpu, double tolerance) {
  const std::vector<double> a = cpu.to_vector<double>(),
                            b = to(gpu, Device::cpu()).to_vector<double>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_LE(std::abs(a[i] - b[i]), tolerance * (1 + std::abs(a[i]))) << i;
}

template <typename Fn>
void expect_same_bits_compiled(Fn fn, const Tensor& x, const Tensor& y) {
  auto cpu = runtime::compile(fn), gpu = runtime::compile(fn);
  const Tensor expected = cpu(x, y), there_x = to(x, kGpu), there_y = to(y, kGpu);
  for (int run = 0; run < 4; ++run) expect_same_bits(expected, gpu(there_x, there_y));
}

TEST(CudaCompiled, ChainsGiveTheBitsOfTheCpu) {
  BRRR_NEEDS_GPU();
  const auto chain = [](const Tensor& x, const Tensor& y) {
    return gelu(x * 1.5 + y) * tanh(y) - maximum(x, 0.25) / (1.0 + square(y));
  };
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    expect_same_bits_compiled(chain, values({129, 257}, 1, dtype), values({257}, 2, dtype));
    expect_same_bits_compiled(chain, values({512, 1024}, 3, dtype), values({512, 1}, 4, dtype));
    expect_same_bits_compiled(chain, transpose(values({100, 60}, 5, dtype), 0, 1),
                              values({60, 100}, 6, dtype));
  }
}

TEST(CudaCompiled, ManyProgramsSideBySideAreOneKernel) {
  BRRR_NEEDS_GPU();
  std::vector<Tensor> cpu, gpu;
  for (uint32_t i = 0; i < 40; ++i) {
    cpu.push_back(values({static_cast<int64_t>(1 + 37 * (i % 5)), 13}, i));
    gpu.push_back(to(cpu.back(), kGpu));
  }
  const auto step_of = [](std::vector<Tensor>& parameters) {
    return runtime::compile([&parameters](const Tensor& rate) {
      for (Tensor& p : parameters) p.copy_from(p - rate * (exp(p) * 0.1 + p));
      return rate + 1.0;
    });
  };
  auto on_cpu = step_of(cpu), on_gpu = step_of(gpu);
  for (int run = 0; run < 3; ++run) {
    on_cpu(tensor(0.01));
    on_gpu(to(tensor(0.01), kGpu));
  }
  for (size_t i = 0; i < cpu.size(); ++i) expect_same_bits(cpu[i], gpu[i]);
  runtime::Executable& program = on_gpu.function().executable({{to(tensor(0.01), kGpu)}});
  EXPECT_LE(program.kernels().kernels.size(), 2U);
  EXPECT_EQ(program.launches_of_last_run(), 1);  // captured and replayed
}

TEST(CudaCompiled, ReductionsAlongEveryAxis) {
  BRRR_NEEDS_GPU();
  const Tensor x = values({12, 300, 65}, 20), there = to(x, kGpu);
  for (const Axes& axes : {Axes{2}, Axes{1, 2}, Axes{1}, Axes{0}, Axes{0, 1}, Axes{0, 1, 2}}) {
    const auto f = [&](const Tensor& v) {
      return Tensors{sqrt(sum(square(v), axes)), max(v * 2.0, axes), mean(exp(v), axes),
                     min(abs(v), axes)};
    };
    auto cpu = runtime::compile(f), gpu = runtime::compile(f);
    const Tensors expected = cpu(x);
    for (int run = 0; run < 3; ++run) {
      const Tensors got = gpu(there);
      for (int i = 0; i < expected.size(); ++i) expect_close(expected[i], got[i], 1e-5);
    }
  }
  const Tensor large = values({3'000'001}, 21);
  auto norm = runtime::compile([](const Tensor& v) { return sum(square(v)); });
  const double cpu_norm = norm(large).item<double>();
  EXPECT_NEAR(norm(to(large, kGpu)).item<double>(), cpu_norm, 1e-5 * cpu_norm);
}

// A small network with momentum, whose step accumulates over micro-batches.
struct Network {
  static constexpr int64_t kVocab = 11, kMost = 4, kBatch = 6;
  Tensor table, w1, b1, w2, gain, shift;
  std::vector<Tensor> parameters, momenta;

  explicit Network(Device device) {
    table = to(values({kVocab, 8}, 31), device), w1 = to(values({8, 32}, 32), device);
    b1 = to(values({32}, 33), device), w2 = to(values({32, kVocab}, 34), device);
    gain = to(ones({8}), device), shift = to(zeros({8}), device);
    parameters = {table, w1, b1, w2, gain, shift};
    for (const Tensor& p : parameters) {
      p.require_grad();
      momenta.push_back(zeros(p.shape(), {.device = device}));
    }
  }
  Tensor loss(const Tensor& x, const Tensor& y) const {
    const Tensor h = layer_norm(embedding(table, x), gain, shift);
    return cross_entropy(matmul(gelu(matmul(h, w1) + b1), w2), y);
  }
  Tensor step(const Tensor& count, const Tensor& x, const Tensor& y) {
    std::vector<Tensor> sums =
        repeat(count, std::vector<Tensor>{x, y}, [&](const Tensor&, std::span<const Tensor> part) {
          const Tensor value = loss(part[0], part[1]);
          std::vector<Tensor> results = grad(value, parameters);
          results.push_back(value.detach());
          return results;
        });
    NoGrad update_only;
    for (size_t i = 0; i < parameters.size(); ++i) {
      momenta[i].copy_from(momenta[i] * 0.9 + sums[i]);
      parameters[i].copy_from(parameters[i] - momenta[i] * 0.05);
    }
    return sums.back();
  }
};

Tensor tokens(int64_t first) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < Network::kMost * Network::kBatch; ++i)
    ids.push_back((first + i * i) % Network::kVocab);
  return from_values(ids, {Network::kMost, Network::kBatch});
}

TEST(CudaCompiled, ARepeatIsReplayedOnceAnIteration) {
  BRRR_NEEDS_GPU();
  Network on_cpu(Device::cpu()), on_gpu(kGpu);
  auto cpu = runtime::compile(
      [&](const Tensor& n, const Tensor& x, const Tensor& y) { return on_cpu.step(n, x, y); });
  auto gpu = runtime::compile(
      [&](const Tensor& n, const Tensor& x, const Tensor& y) { return on_gpu.step(n, x, y); });
  for (int64_t run = 0; run < 6; ++run) {
    const int64_t n = run % 2 == 0 ? 4 : 3;
    const Tensor count = from_values(std::vector<int64_t>{n}, {});
    const double expected = cpu(count, tokens(run), tokens(run + 1)).item<double>();
    const double got =
        gpu(to(count, kGpu), to(tokens(run), kGpu), to(tokens(run + 1), kGpu)).item<double>();
    EXPECT_NEAR(got, expected, 1e-4 * std::abs(expected)) << run;
    const runtime::Executable& program = gpu.function().executable(
        {{to(count, kGpu), to(tokens(run), kGpu), to(tokens(run), kGpu)}});
    if (run > 1) {
      EXPECT_EQ(program.launches_of_last_run(), n + 1);  // micro-batches and the update
    }
  }
  for (size_t i = 0; i < on_cpu.parameters.size(); ++i)
    expect_close(on_cpu.parameters[i], on_gpu.parameters[i], 1e-4);
}

TEST(CudaCompiled, GradientsOfSlicesAreReadWhereTheyAre) {
  BRRR_NEEDS_GPU();
  const auto g = [](const Tensor& x, const Tensor& y) {
    const Shape rows{30, 5, 16};
    return place_slice(x, rows, 1, {1, 3}) * 2.0 + place_slice(transpose(y, 0, 1), rows, 0, {4, 6});
  };
  auto cpu = runtime::compile(g), gpu = runtime::compile(g);
  const Tensor x = values({30, 2, 16}, 70), y = values({5, 2, 16}, 71);
  const Tensor expected = cpu(x, y);
  for (int run = 0; run < 3; ++run) expect_same_bits(expected, gpu(to(x, kGpu), to(y, kGpu)));
}

TEST(CudaCompiled, InputsMayComeFromTheCpu) {
  BRRR_NEEDS_GPU();
  const Tensor w = to(values({64, 64}, 40), kGpu);
  compiler::PipelineOptions options;
  options.device = kGpu;
  auto f = runtime::compile([&](const Tensor& x) { return sum(matmul(x, w) * 2.0); }, options);
  const Tensor x = values({8, 64}, 41);
  const double expected = sum(matmul(x, to(w, Device::cpu())) * 2.0).item<double>();
  for (int run = 0; run < 3; ++run)
    EXPECT_NEAR(f(x).item<double>(), expected, 1e-3 * (1 + std::abs(expected)));
}

TEST(CudaCompiled, LargeInputsAreReadWhereTheyAre) {
  BRRR_NEEDS_GPU();
  auto f = runtime::compile([](const Tensor& x) { return cos(cos(x)); });
  for (uint32_t draw = 50; draw < 53; ++draw) {
    const Tensor x = values({2 << 20}, draw);
    expect_same_bits(cos(cos(x)), f(to(x, kGpu)));
  }
}

TEST(CudaCompiled, EveryKernelHasATime) {
  BRRR_NEEDS_GPU();
  auto f = runtime::compile([](const Tensor& x) { return sum(exp(x), {1}) * 2.0; });
  const Tensor x = to(values({1024, 1024}, 60), kGpu);
  runtime::Executable& program = f.function().executable({{x}});
  runtime::KernelTimes times;
  for (int run = 0; run < 3; ++run) program.run_timed({{x}}, times);
  ASSERT_EQ(times.seconds.size(), program.kernels().kernels.size());
  for (const double seconds : times.seconds) EXPECT_GT(seconds, 0);
}

// The host is several runs ahead, with inputs of its own memory and more results waiting than there are
// places to stage inputs in.
TEST(CudaCompiled, RunsThatWereEnqueuedGiveTheirOwnResults) {
  BRRR_NEEDS_GPU();
  const Tensor total = to(zeros({4}), kGpu);
  runtime::CompiledFunction step(
      [&](std::span<const Tensor> x) -> Tensors {
        total.copy_from(total + x[0]);
        return {sum(total), x[0] * 2.0 + x[1]};
      },
      {.device = kGpu});
  std::vector<runtime::PendingResults> pending;
  for (int run = 1; run <= 8; ++run) {
    const Tensor x = full({4}, run), there = to(full({4}, 0.5), kGpu);
    pending.push_back(step.enqueue(std::vector<Tensor>{x, there}));
  }
  for (int run = 1; run <= 8; ++run) {
    const Tensors results = pending[static_cast<size_t>(run - 1)].take();
    EXPECT_EQ(results[0].device(), Device::cpu());
    EXPECT_EQ(results[0].item<float>(), static_cast<float>(4 * run * (run + 1) / 2));
    EXPECT_EQ(results[1].to_vector<float>(), std::vector<float>(4, 2.0F * run + 0.5F));
  }
}

TEST(CudaCompiled, ABadIdIsToldWhenItsResultsAreTaken) {
  BRRR_NEEDS_GPU();
  const Tensor table = to(values({5, 4}, 1), kGpu);
  runtime::CompiledFunction look_up(
      [&](std::span<const Tensor> ids) -> Tensors { return {embedding(table, ids[0])}; },
      {.device = kGpu});
  runtime::PendingResults bad =
      look_up.enqueue(std::vector<Tensor>{from_values(std::vector<int64_t>{1, 7}, {2})});
  EXPECT_THAT(error_of([&] { bad.take(); }), testing::HasSubstr("7"));
}

}  // namespace
}  // namespace brrr
