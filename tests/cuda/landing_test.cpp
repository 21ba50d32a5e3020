// Attention that writes rows apart, by each of its kernels: the bits of the program that copies.
#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/compiler/lower/copy_elision.h"
#include "brrr/ops/attention/attention.h"
#include "brrr/ops/attention/rope.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/compile.h"
#include "cuda/gpu.h"

namespace brrr {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};

struct LandingCase {
  std::string name;
  int64_t batch, seq, heads, dim;
  DType dtype;
  bool turned = false;
};

Tensor values(const Shape& shape, uint32_t draw, DType dtype) {
  return to(cast(normal(shape, RandomKey{.seed = 5, .stream = 7, .draw = draw}), dtype), kGpu);
}

int copies_in(const compiler::KernelList& list) {
  int count = 0;
  for (const compiler::Kernel& kernel : list.kernels) {
    for (const compiler::KernelPart& part : kernel.parts)
      count += part.op == &copy_op || part.op == &concat_op ? 1 : 0;
  }
  return count;
}

class CudaLanding : public testing::TestWithParam<LandingCase> {};

TEST_P(CudaLanding, GivesTheBitsOfCopies) {
  BRRR_NEEDS_GPU();
  const LandingCase& c = GetParam();
  const int64_t width = c.heads * c.dim;
  const Tensor x = values({c.batch, c.seq, 3 * width}, 1, c.dtype),
               weight = values({c.batch, c.seq, width}, 2, c.dtype);
  const auto step = [&](const Tensor& rows, const Tensor& factor) {
    Tensor input = rows + 0.0;
    input.require_grad();
    const std::vector<Tensor> parts = unstack(view(input, {c.batch, c.seq, 3, c.heads, c.dim}), 2);
    const auto heads = [&](size_t i) { return transpose(parts[i], 1, 2); };
    const Tensor table =
        rope_table(arange(0, static_cast<double>(c.seq), 1, {DType::i64, kGpu}), c.dim / 2);
    const auto turn = [&](const Tensor& h) { return c.turned ? rope(h, table) : h; };
    const Tensor out = attention(turn(heads(0)), turn(heads(1)), heads(2), {.causal = true});
    const Tensor y = reshape(transpose(out, 1, 2), {c.batch, c.seq, width}) * factor;
    return Tensors{y, grad(sum(cast(y, DType::f32)), {input})[0] * 1.0};
  };
  auto landed = runtime::compile(step),
       copied = runtime::compile(step, compiler::without({}, "land_results"));
  const Tensors expected = copied(x, weight);
  for (int run = 0; run < 3; ++run) {
    const Tensors got = landed(x, weight);
    for (int i = 0; i < expected.size(); ++i)
      ASSERT_EQ(to(got[i], Device::cpu()).to_vector<float>(),
                to(expected[i], Device::cpu()).to_vector<float>())
          << (i == 0 ? "rows" : "gradient");
  }
  EXPECT_EQ(copies_in(landed.function().executable({{x, weight}}).kernels()), 0);
  EXPECT_GE(copies_in(copied.function().executable({{x, weight}}).kernels()), 2);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, CudaLanding,
    testing::Values(LandingCase{"one_kernel", 5, 200, 12, 64, DType::bf16},
                    LandingCase{"one_kernel_f16", 6, 129, 8, 64, DType::f16},
                    LandingCase{"two_kernels", 2, 200, 3, 64, DType::bf16},
                    LandingCase{"heads_of_32", 2, 130, 4, 32, DType::bf16},
                    LandingCase{"heads_of_128", 2, 130, 2, 128, DType::bf16},
                    LandingCase{"heads_of_80", 2, 130, 2, 80, DType::bf16},
                    LandingCase{"heads_of_256", 1, 130, 2, 256, DType::f16},
                    LandingCase{"turned", 4, 150, 12, 64, DType::bf16, true},
                    LandingCase{"turned_plain", 2, 33, 2, 16, DType::f32, true},
                    LandingCase{"plain", 2, 65, 3, 24, DType::f32}),
    [](const testing::TestParamInfo<LandingCase>& test) { return test.param.name; });

}  // namespace
}  // namespace brrr
