// 8-bit operands and products on a GPU: the bits of the cpu in both layouts, products with scales and bias in every
// mixture of formats, and training in which no product is widened.
#include "brrr/ops/matmul/fp8.h"

#include <cmath>
#include <limits>
#include <tuple>

#include "brrr/autodiff/grad.h"
#include "brrr/cost/tensor_core_use.h"
#include "brrr/device/default_device.h"
#include "brrr/graph/call.h"
#include "brrr/kernels/cuda/gemm/gemm_cuda.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/view/views.h"
#include "brrr/optim/optimizer.h"
#include "brrr/runtime/compile.h"
#include "cuda/gpu.h"
#include "cuda/low_precision.h"
#include "cuda/modes.h"
#include "support/square_tokens.h"

namespace brrr {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};

Tensor random(const Shape& shape, uint32_t draw, DType dtype) {
  return cast(normal(shape, RandomKey{.seed = 33, .stream = 5, .draw = draw}), dtype);
}

std::vector<float> floats(const Tensor& x) {
  return cast(to(x, Device::cpu()), DType::f32).to_vector<float>();
}

void expect_same(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(got.type(), expected.type()) << what;
  const std::vector<float> a = floats(got), b = floats(expected);
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
        << what << ", element " << i << ": " << a[i] << ", not " << b[i];
}

Tensors quantized(const Tensor& x, double scale, DType format, int64_t columns) {
  const Tensor inputs[] = {x, to(cast(full({}, scale), DType::f32), x.device())};
  return call_op(
      quantize_op, inputs,
      {{"dtype", format}, {"columns", columns}, {"plain", true}, {"turned", true}, {"amax", true}});
}

// Tiles of 128 x 128 and their edges, heads that lie transposed, and sizes that are walked element by element.
TEST(CudaFp8, QuantizesBothLayoutsAndTheLargestMagnitudeInOnePass) {
  BRRR_NEEDS_GPU();
  struct Case {
    Shape shape;
    int64_t columns;
    bool heads_first = false;
  };
  const Case cases[] = {{{256, 384}, 384},          {{16, 16}, 16},
                        {{144, 2064}, 2064},        {{4, 32, 3, 2, 32}, 192},
                        {{2, 3, 64, 32}, 96, true}, {{33, 50}, 50}};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const DType format : {DType::f8e4m3, DType::f8e5m2}) {
      uint32_t draw = 1;
      for (const Case& c : cases) {
        const std::string what = join_text(dtype, c.shape, " to ", format);
        Tensor x = random(c.shape, draw++, dtype), there = to(x, kGpu);
        if (c.heads_first) x = transpose(x, 1, 2), there = transpose(there, 1, 2);
        const double scale = format == DType::f8e4m3 ? 100 : 15000;  // some are beyond the format
        const Tensors expected = quantized(x, scale, format, c.columns),
                      got = quantized(there, scale, format, c.columns);
        for (int i = 0; i < 3; ++i) expect_same(got[i], expected[i], join_text(what, " ", i));
      }
    }
  }
}

// Where one number is not finite the whole chunk goes another way.
TEST(CudaFp8, InfinitiesAndNanAreTheCpus) {
  BRRR_NEEDS_GPU();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const DType format : {DType::f8e4m3, DType::f8e5m2}) {
    for (const float odd : {kInfinity, -kInfinity, std::nanf(""), 3e38F}) {
      std::vector<float> values = floats(random({32, 128}, 40, DType::f32));
      values[700] = odd;
      const Tensor x = from_values(values, {32, 128});
      const Tensors expected = quantized(x, 8, format, 128),
                    got = quantized(to(x, kGpu), 8, format, 128);
      for (int i = 0; i < 3; ++i)
        expect_same(got[i], expected[i], join_text(format, " with ", odd, ", result ", i));
    }
  }
}

TEST(CudaFp8, ProductsOfEveryMixtureWithScalesAndBias) {
  BRRR_NEEDS_GPU();
  const struct {
    DType a, b;
  } formats[] = {{DType::f8e4m3, DType::f8e4m3},
                 {DType::f8e5m2, DType::f8e4m3},
                 {DType::f8e4m3, DType::f8e5m2},
                 {DType::f8e5m2, DType::f8e5m2}};  // the last is widened
  for (const auto& format : formats) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      for (const bool has_bias : {false, true}) {
        const Tensor a = random({2, 128, 256}, 50, format.a), b = random({192, 256}, 51, format.b);
        std::vector<Tensor> inputs{a, transpose(b), full({}, 0.25), full({}, 0.125)};
        if (has_bias) inputs.push_back(random({192}, 52, DType::bf16));
        std::vector<Tensor> there;
        for (const Tensor& x : inputs) there.push_back(to(x, kGpu));
        there[1] = transpose(to(b, kGpu));
        const Attrs attrs{{"dtype", dtype}};
        const Tensor got = call_op(matmul_scaled_op, there, attrs)[0],
                     expected = call_op(matmul_scaled_op, inputs, attrs)[0];
        // Tensor cores keep fewer bits of 8-bit sums than f32 has.
        const double tolerance = dtype == DType::bf16 ? 8e-3 : 5e-3;
        EXPECT_LT(relative_error(got, expected), tolerance)
            << to_text(format.a) << " " << to_text(format.b) << " to " << to_text(dtype)
            << (has_bias ? " with a bias" : "");
      }
    }
  }
  EXPECT_NE(kernels::gemm_choices().used_text().find("scaled"), std::string::npos)
      << "the library has multiplied by the scales: " << kernels::gemm_choices().used_text();
}

// In a program the scales of all operands are one vector, and the library reads them at multiples of 16 bytes only.
TEST(CudaFp8, ScalesMayBeNeighbours) {
  BRRR_NEEDS_GPU();
  const Tensor a = to(random({64, 128}, 53, DType::f8e4m3), kGpu),
               b = to(random({96, 128}, 54, DType::f8e4m3), kGpu),
               scales = to(from_values(std::vector<float>{9, 0.25F, 0.5F, 0.125F, 2}, {5}), kGpu);
  const auto product = [&](int64_t first, int64_t second) {
    const Tensor inputs[] = {a, transpose(b), select(scales, 0, first), select(scales, 0, second)};
    return to(call_op(matmul_scaled_op, inputs, {{"dtype", DType::bf16}})[0], Device::cpu())
        .to_vector<float>();
  };
  const std::vector<float> expected = product(4, 0);  // 2 * 9, at 16 and 0 bytes
  for (const auto& [first, second, factor] :
       {std::tuple{1, 2, 0.125F}, std::tuple{2, 3, 0.0625F}, std::tuple{4, 1, 0.5F}}) {
    std::vector<float> got = product(first, second);
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i] / factor, expected[i] / 18, 1e-2 * (1 + std::abs(expected[i] / 18)));
  }
}

// dX = dY W and dW = dY^T X of transposed copies are those of the factors as they lie, which are widened to bf16: exact
// but for sums.
TEST(CudaFp8, TurnedFactorsGiveTheGradientsOfWidenedOnes) {
  BRRR_NEEDS_GPU();
  const Tensor x = to(random({512, 256}, 60, DType::bf16), kGpu),
               w = to(random({384, 256}, 61, DType::f32), kGpu),
               dy = to(random({512, 384}, 62, DType::bf16), kGpu);
  const Tensors qx = quantized(x, 50, DType::f8e4m3, 256),
                qw = quantized(w, 60, DType::f8e4m3, 256),
                qdy = quantized(dy, 9000, DType::f8e5m2, 384);
  const auto product = [](const Tensor& a, const Tensor& b) {
    const Tensor inputs[] = {a, b};
    return call_op(matmul_op, inputs, {{"dtype", DType::f32}})[0];
  };
  EXPECT_LT(relative_error(product(qdy[0], transpose(qw[1])), product(qdy[0], qw[0])), 5e-3);
  EXPECT_LT(relative_error(product(qdy[1], transpose(qx[1])), product(transpose(qdy[0]), qx[0])),
            5e-3);
}

// The same model with and without the pass: its losses, and what its products run on.
TEST(CudaFp8, TrainingWidensNothingAndLearnsTheSame) {
  BRRR_NEEDS_GPU();
  const auto train = [](std::string_view left_out, int& full, int& products) {
    const DeviceScope device(kGpu);
    Random random(3);
    Gpt2 model(kSmallGpt, random);
    AdamW optimizer(model.named_parameters(), AdamWOptions{.weight_decay = 0.1});
    compiler::PipelineOptions options = compiler::without(
        {.precision = {.policy = compiler::Precision::fp8_mixed}, .device = kGpu}, left_out);
    runtime::CompiledFunction step(
        [&](std::span<const Tensor> x) -> Tensors {
          const Tensor loss = model.loss(x[0], x[1]);
          optimizer.update(grad(loss, optimizer.parameters()), 3e-3);
          return {loss.detach()};
        },
        options);
    const SquareTokens batch({2, 32});
    const std::vector<Tensor> inputs{to(batch.tokens, kGpu), to(batch.targets, kGpu)};
    std::vector<double> losses;
    for (int i = 0; i < 20; ++i)
      losses.push_back(step.executable(inputs).run(inputs)[0].item<double>());
    for (const compiler::Kernel& kernel : step.executable(inputs).kernels().kernels) {
      const auto use = cost::tensor_cores_of(kernel, {.major = 9, .minor = 0});
      if (!use || kernel.op == &attention_op || kernel.op == &attention_backward_op) continue;
      ++products;
      full += use->mark() == "fp8" ? 1 : 0;
    }
    return losses;
  };
  int full = 0, products = 0, bare_full = 0, bare_products = 0;
  const std::vector<double> got = train("", full, products),
                            expected = train("fp8_products", bare_full, bare_products);
  EXPECT_EQ(full, products);
  EXPECT_LT(bare_full, bare_products) << "without the pass those of the backward part are widened";
  EXPECT_LT(got.back(), 0.8 * got.front());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 0.05 * expected[i]) << i;
}

}  // namespace
}  // namespace brrr
