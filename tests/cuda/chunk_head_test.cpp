// Compiled steps on a GPU whose head runs in chunks of rows against the same with all logits at once: losses of
// every row and the gradients of all parameters.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "brrr/autodiff/grad.h"
#include "brrr/device/default_device.h"
#include "brrr/nn/models.h"
#include "brrr/ops/control/repeat.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/loss/cross_entropy.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/compile.h"
#include "cuda/gpu.h"
#include "cuda/modes.h"

namespace brrr {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};
constexpr int64_t kVocab = 1024, kSeq = 125;

// dX is rounded to the low dtype with the head whole or cut; products of other sizes may add in another order,
// and values next to the middle of two low ones then round to the other.
constexpr Mode kModes[] = {
    {"f32", compiler::Precision::f32, compiler::MatmulPrecision::ieee, 2e-5},
    {"tf32", compiler::Precision::f32, compiler::MatmulPrecision::tf32, 2e-3},
    {"bf16", compiler::Precision::bf16_mixed, compiler::MatmulPrecision::ieee, 1e-2},
    {"f16", compiler::Precision::f16_mixed, compiler::MatmulPrecision::ieee, 2e-3},
    {"fp8", compiler::Precision::fp8_mixed, compiler::MatmulPrecision::ieee, 5e-2}};

compiler::PipelineOptions options_of(const Mode& mode, int64_t rows) {
  compiler::PipelineOptions options;
  options.precision.policy = mode.policy;
  options.precision.matmul = mode.products;
  options.head = {.chunk_bytes = 0, .min_rows = rows, .row_multiple = 128};
  return options;
}

struct Model {
  Random random{3};
  std::unique_ptr<LanguageModel> model;
  std::vector<Tensor> parameters;

  Model() {
    Gpt2Config config{.vocab = kVocab, .context = 128, .layers = 2, .heads = 2, .width = 64};
    model = make_model(config, random);
    for (const NamedTensor& named : model->named_parameters()) parameters.push_back(named.tensor);
  }
};

Tensor ids(const Shape& shape, uint32_t draw) {
  return randint(shape, RandomKey{.seed = 1, .stream = 1, .draw = draw}, 0, kVocab,
                 {.dtype = DType::i64, .device = kGpu});
}

int count(const std::vector<compiler::Kernel>& kernels, const OpDef& op) {
  return static_cast<int>(
      std::count_if(kernels.begin(), kernels.end(),
                    [&](const compiler::Kernel& kernel) { return kernel.op == &op; }));
}

// Three runs each: by launches, captured, replayed. The same bits every time.
void expect_alike(const Mode& mode, runtime::CompiledFunction& cut,
                  runtime::CompiledFunction& whole, std::span<const Tensor> inputs) {
  const Tensors expected = whole.run(inputs), first = cut.run(inputs);
  ASSERT_EQ(first.size(), expected.size());
  for (int i = 0; i < first.size(); ++i) {
    EXPECT_LT(relative_error(first[i], expected[i]), mode.tolerance)
        << mode.name << " result " << i << " of shape " << to_text(first[i].shape());
  }
  if (mode.policy == compiler::Precision::fp8_mixed) return;  // scales follow from the runs before
  for (int run = 0; run < 2; ++run) {
    const Tensors again = cut.run(inputs);
    for (int i = 0; i < again.size(); ++i)
      EXPECT_EQ(to(again[i], Device::cpu()).to_vector<float>(),
                to(first[i], Device::cpu()).to_vector<float>())
          << mode.name << " result " << i << " in run " << run;
  }
}

TEST(CudaChunkHead, Gpt2HasTheSameLossesAndGradients) {
  BRRR_NEEDS_GPU();
  const DeviceScope scope(kGpu);
  Model gpt;
  const auto step = [&](std::span<const Tensor> x) {
    const Tensor losses = cross_entropy_each(gpt.model->logits(x[0]), x[1]);
    Tensors results{losses.detach()};
    for (const Tensor& gradient : grad(mean(losses), gpt.parameters)) results.push_back(gradient);
    return results;
  };
  const std::vector<Tensor> inputs{ids({8, kSeq}, 0), ids({8, kSeq}, 1)};
  for (const Mode& mode : kModes) {
    // 1000 rows: 384, 384 and 232.
    runtime::CompiledFunction cut(step, options_of(mode, 300)),
        whole(step, compiler::without(options_of(mode, 300), "chunk_head"));
    const runtime::Executable &program = cut.executable(inputs), &plain = whole.executable(inputs);
    EXPECT_EQ(count(program.kernels().kernels, classifier_op), 3) << mode.name;
    EXPECT_EQ(count(program.kernels().kernels, cross_entropy_op), 0) << mode.name;
    EXPECT_EQ(count(plain.kernels().kernels, cross_entropy_op), 1) << mode.name;
    // dW of the second and the third chunk is added by their products.
    EXPECT_GE(count(program.kernels().kernels, matmul_add_op),
              count(plain.kernels().kernels, matmul_add_op) +
                  (mode.policy == compiler::Precision::fp8_mixed ? 0 : 2))
        << mode.name;
    expect_alike(mode, cut, whole, inputs);
  }
}

TEST(CudaChunkHead, MicroBatchesHaveTheSameSums) {
  BRRR_NEEDS_GPU();
  const DeviceScope scope(kGpu);
  Model gpt;
  const auto step = [&](std::span<const Tensor> x) {
    const std::vector<Tensor> sums =
        repeat(x[0], {x[1], x[2]}, [&](const Tensor& tokens, const Tensor& targets) {
          const Tensor loss = gpt.model->loss(tokens, targets);
          std::vector<Tensor> parts{loss.detach()};
          for (const Tensor& gradient : grad(loss, gpt.parameters)) parts.push_back(gradient);
          return parts;
        });
    return Tensors(std::span<const Tensor>(sums));
  };
  const std::vector<Tensor> inputs{to(from_values<int64_t>({3}, {}), kGpu), ids({4, 8, kSeq}, 2),
                                   ids({4, 8, kSeq}, 3)};
  for (const Mode& mode : {kModes[0], kModes[2]}) {
    runtime::CompiledFunction cut(step, options_of(mode, 300)),
        whole(step, compiler::without(options_of(mode, 300), "chunk_head"));
    expect_alike(mode, cut, whole, inputs);
  }
}

}  // namespace
}  // namespace brrr
