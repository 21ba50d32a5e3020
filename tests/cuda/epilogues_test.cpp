// Compiled steps on a GPU with the epilogues of cuBLASLt against the same without: losses and the gradients of
// all parameters, biases among them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "brrr/autodiff/grad.h"
#include "brrr/device/default_device.h"
#include "brrr/kernels/cuda/gemm/gemm_cuda.h"
#include "brrr/nn/models.h"
#include "brrr/ops/control/repeat.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/runtime/compile.h"
#include "cuda/gpu.h"
#include "cuda/modes.h"

namespace brrr {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};
constexpr const char* kAllEpilogues = "gelu_epilogue,sum_epilogue,add_epilogue";

Tensor values(const Shape& shape, uint32_t draw, double scale = 1) {
  return to(normal(shape, RandomKey{.seed = 31, .stream = 5, .draw = draw}) * scale, kGpu);
}

// Epilogues round less often: results differ by some roundings of the low dtype. tf32 reads 10 bits either way,
// in products of other shapes of tiles.
constexpr Mode kModes[] = {
    {"f32", compiler::Precision::f32, compiler::MatmulPrecision::ieee, 2e-5},
    {"tf32", compiler::Precision::f32, compiler::MatmulPrecision::tf32, 5e-3},
    {"bf16", compiler::Precision::bf16_mixed, compiler::MatmulPrecision::ieee, 3e-2},
    {"f16", compiler::Precision::f16_mixed, compiler::MatmulPrecision::ieee, 5e-3}};

compiler::PipelineOptions options_of(const Mode& mode) {
  compiler::PipelineOptions options;
  options.precision.policy = mode.policy;
  options.precision.matmul = mode.products;
  options.epilogues = {.fewest_gelus = 0, .most_summed_bytes = std::numeric_limits<int64_t>::max()};
  return options;
}

int count(runtime::Executable& program, const OpDef& op) {
  const std::vector<compiler::Kernel>& kernels = program.kernels().kernels;
  return static_cast<int>(
      std::count_if(kernels.begin(), kernels.end(),
                    [&](const compiler::Kernel& kernel) { return kernel.op == &op; }));
}

// Three runs: by launches, captured, replayed. `adds_behind_products`: in the dtype of the products.
void expect_alike(const Mode& mode, const runtime::CompiledFunction::Function& step,
                  std::span<const Tensor> inputs, bool adds_behind_products) {
  runtime::CompiledFunction with(step, options_of(mode));
  runtime::CompiledFunction bare(step, compiler::without(options_of(mode), kAllEpilogues));
  runtime::Executable &program = with.executable(inputs), &plain = bare.executable(inputs);
  if (mode.policy != compiler::Precision::f32) {  // GELU since Hopper; f32 has its own
    const bool has_gelu = cuda::device_facts(0).major >= 9;
    EXPECT_EQ(count(program, matmul_gelu_op) > 0, has_gelu) << mode.name;
    EXPECT_EQ(count(program, matmul_gelu_backward_op) > 0, has_gelu) << mode.name;
  }
  EXPECT_GT(count(program, matmul_sums_op), 0) << mode.name << ": the library has no such epilogue";
  EXPECT_EQ(count(program, matmul_add_op) > 0, adds_behind_products) << mode.name;
  EXPECT_EQ(count(plain, matmul_gelu_op) + count(plain, matmul_sums_op), 0);
  const Tensors expected = bare.run(inputs);
  for (int run = 0; run < 3; ++run) {
    const Tensors got = with.run(inputs);
    ASSERT_EQ(got.size(), expected.size());
    for (int i = 0; i < got.size(); ++i) {
      EXPECT_LT(relative_error(got[i], expected[i]), mode.tolerance)
          << mode.name << " result " << i << " of shape " << to_text(got[i].shape());
    }
  }
}

TEST(CudaEpilogues, AnMlpHasTheSameGradients) {
  BRRR_NEEDS_GPU();
  constexpr int64_t kIn = 128, kHidden = 512;
  const std::vector<Tensor> parameters{values({kHidden, kIn}, 1, 0.05), values({kHidden}, 2, 0.1),
                                       values({kIn, kHidden}, 3, 0.05), values({kIn}, 4, 0.1)};
  for (const Tensor& p : parameters) p.require_grad();
  const auto step = [&](std::span<const Tensor> x) {
    const Tensor hidden = gelu_tanh(linear(x[0], parameters[0], parameters[1]));
    const Tensor y = x[0] + linear(hidden, parameters[2], parameters[3]);
    const Tensor loss = mean(square(y));
    Tensors results{loss.detach()};
    for (const Tensor& gradient : grad(loss, parameters)) results.push_back(gradient);
    return results;
  };
  const Tensor x = values({4, 96, kIn}, 5);
  for (const Mode& mode : kModes)
    expect_alike(mode, step, {{x}}, mode.policy == compiler::Precision::f32);  // x is f32
}

TEST(CudaEpilogues, Gpt2HasTheSameGradients) {
  BRRR_NEEDS_GPU();
  const DeviceScope scope(kGpu);
  Random random{3};
  const ModelConfig config = model_preset("gpt2-tiny");
  const std::unique_ptr<LanguageModel> model = make_model(config, random);
  std::vector<Tensor> parameters;
  for (const NamedTensor& named : model->named_parameters()) parameters.push_back(named.tensor);
  const auto step = [&](std::span<const Tensor> x) {
    const Tensor loss = model->loss(x[0], x[1]);
    Tensors results{loss.detach()};
    for (const Tensor& gradient : grad(loss, parameters)) results.push_back(gradient);
    return results;
  };
  const auto ids = [&](uint32_t draw) {
    return randint({4, 32}, RandomKey{.seed = 1, .stream = 1, .draw = draw}, 0, vocab_of(config),
                   {.dtype = DType::i64, .device = kGpu});
  };
  const std::vector<Tensor> inputs{ids(0), ids(1)};
  for (const Mode& mode : kModes) expect_alike(mode, step, inputs, true);
}

// Sums of micro-batches: the body adds to them in place, iteration after iteration.
TEST(CudaEpilogues, MicroBatchesAddToTheirSums) {
  BRRR_NEEDS_GPU();
  constexpr int64_t kIn = 64, kOut = 128, kMost = 4;
  const Tensor w = values({kOut, kIn}, 11, 0.1).require_grad(),
               b = values({kOut}, 12, 0.1).require_grad();
  const Tensor x = values({kMost, 48, kIn}, 13);
  const auto step = [&](std::span<const Tensor> given) {
    const std::vector<Tensor> sums = repeat(given[0], {given[1]}, [&](const Tensor& part) {
      return grad(sum(square(linear(part, w, b))), {w, b});
    });
    return Tensors{sums[0], sums[1]};
  };
  const std::vector<Tensor> inputs{to(from_values(std::vector<int64_t>{3}, {}), kGpu), x};
  for (const Mode& mode : {kModes[0], kModes[1], kModes[2]}) {
    runtime::CompiledFunction with(step, options_of(mode));
    runtime::CompiledFunction bare(step, compiler::without(options_of(mode), kAllEpilogues));
    const Tensors expected = bare.run(inputs);
    for (int run = 0; run < 3; ++run) {
      const Tensors got = with.run(inputs);
      for (int i = 0; i < got.size(); ++i) {
        EXPECT_LT(relative_error(got[i], expected[i]), mode.tolerance) << mode.name << " sum " << i;
      }
    }
  }
}

}  // namespace
}  // namespace brrr
