// Products of the library beside the cpu: dtypes, strides and batches without copies, epilogues, choices.
#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/kernels/cuda/gemm/gemm_cuda.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "cuda/gpu.h"
#include "support/error_of.h"

namespace brrr {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};

Tensor random(const Shape& shape, uint32_t draw, DType dtype = DType::f32) {
  return cast(normal(shape, RandomKey{.seed = 21, .stream = 4, .draw = draw}), dtype);
}

double relative_error(const Tensor& got, const Tensor& expected) {
  const Tensor a = cast(to(got, Device::cpu()), DType::f64), b = cast(expected, DType::f64);
  return std::sqrt(sum(square(a - b)).item<double>() / sum(square(b)).item<double>());
}

TEST(CudaGemm, EveryFloatDtypeOnUsualShapes) {
  BRRR_NEEDS_GPU();
  for (const auto& [dtype, tolerance] :
       {std::pair{DType::f64, 1e-14}, std::pair{DType::f32, 2e-6}, std::pair{DType::f16, 1e-3},
        std::pair{DType::bf16, 4e-3}, std::pair{DType::f8e4m3, 5e-2}}) {
    const Tensor x = random({192, 256}, 1, dtype), w = random({128, 256}, 2, dtype),
                 bias = random({128}, 3, dtype);
    const Tensor expected = linear(x, w, bias);
    EXPECT_LT(relative_error(linear(to(x, kGpu), to(w, kGpu), to(bias, kGpu)), expected), tolerance)
        << to_text(dtype);
    EXPECT_LT(relative_error(matmul(to(x, kGpu), transpose(to(w, kGpu))), matmul(x, transpose(w))),
              tolerance)
        << to_text(dtype);
  }
}

TEST(CudaGemm, BatchesAndStridesOfAttentionNeedNoCopies) {
  BRRR_NEEDS_GPU();
  const Tensor qkv = random({2, 40, 3, 4, 32}, 4), there = to(qkv, kGpu);
  const auto head = [](const Tensor& x, int64_t i) { return transpose(select(x, 2, i), 1, 2); };
  EXPECT_LT(relative_error(matmul(head(there, 0), transpose(head(there, 1))),
                           matmul(head(qkv, 0), transpose(head(qkv, 1)))),
            2e-6);
}

TEST(CudaGemm, Tf32ReadsTheUpperBitsOfItsOperands) {
  BRRR_NEEDS_GPU();
  const Tensor a = random({256, 512}, 5), b = random({512, 128}, 6);
  const Tensor inputs[] = {to(a, kGpu), to(b, kGpu)};
  const Tensor got = call_op(matmul_op, inputs, {{"tf32", true}})[0];
  const double error = relative_error(got, matmul(a, b));
  EXPECT_LT(error, 2e-3);
  EXPECT_GT(error, 1e-5) << "that was no tf32";
}

// The library's own GELU is the tanh form.
TEST(CudaGemm, EpiloguesAreTheirCompositions) {
  BRRR_NEEDS_GPU();
  const int64_t m = 256, n = 384, k = 128;
  const Tensor x = to(random({m, k}, 7, DType::bf16), kGpu),
               w = to(random({n, k}, 8, DType::bf16), kGpu),
               bias = to(random({n}, 9, DType::bf16), kGpu), y = empty({m, n}, DType::bf16, kGpu),
               aux = empty({m, n}, DType::bf16, kGpu),
               workspace = empty({kernels::kGemmWorkspaceBytes}, DType::u8, kGpu);
  const std::span<std::byte> scratch(workspace.storage().data(),
                                     static_cast<size_t>(kernels::kGemmWorkspaceBytes));
  kernels::Gemm gemm{.m = m,
                     .n = n,
                     .k = k,
                     .a = {x.storage().data(), DType::bf16, k, 1, 0},
                     .b = {w.storage().data(), DType::bf16, 1, k, 0},
                     .c = {y.storage().data(), DType::bf16, n, 1, 0}};
  gemm.epilogue = kernels::GemmEpilogue::bias_gelu_aux;
  gemm.bias = bias.storage().data();
  gemm.bias_dtype = DType::bf16;
  gemm.aux = aux.storage().data();
  kernels::run_gemm_cuda(gemm, cuda::stream(0), scratch);
  const auto wide = [](const Tensor& t) { return cast(to(t, Device::cpu()), DType::f32); };
  const Tensor before = matmul(wide(x), transpose(wide(w))) + wide(bias);
  EXPECT_LT(relative_error(aux, before), 5e-3);
  EXPECT_LT(relative_error(y, gelu_tanh(before)), 1e-2);

  // dgelu: (dy w2) * gelu'(aux), and the sums of its columns.
  const Tensor dy = to(random({m, k}, 10, DType::bf16), kGpu), sums = empty({n}, DType::bf16, kGpu);
  gemm.a.data = dy.storage().data();
  gemm.epilogue = kernels::GemmEpilogue::dgelu_bias_grad;
  gemm.bias = sums.storage().data();
  kernels::run_gemm_cuda(gemm, cuda::stream(0), scratch);
  const Tensor inputs[] = {wide(aux), matmul(wide(dy), transpose(wide(w)))};
  const Tensor expected = call_op(gelu_tanh_backward_op, inputs)[0];
  EXPECT_LT(relative_error(y, expected), 2e-2);
  EXPECT_LT(relative_error(sums, sum(expected, {0})), 3e-2);

  // dW = dY^T X with db beside it, added to what is there.
  const Tensor dy2 = to(random({m, n}, 11, DType::bf16), kGpu), dw = to(random({n, k}, 12), kGpu);
  const Tensor start = to(dw, Device::cpu());
  kernels::Gemm weight{.m = n,
                       .n = k,
                       .k = m,
                       .a = {dy2.storage().data(), DType::bf16, 1, n, 0},
                       .b = {x.storage().data(), DType::bf16, k, 1, 0},
                       .c = {dw.storage().data(), DType::f32, k, 1, 0},
                       .accumulate = true};
  kernels::run_gemm_cuda(weight, cuda::stream(0), scratch);
  EXPECT_LT(relative_error(dw, start + matmul(transpose(wide(dy2)), wide(x))), 2e-3);
}

TEST(CudaGemm, ChoicesComeBackAsTheyWereWritten) {
  BRRR_NEEDS_GPU();
  const Tensor x = to(random({512, 512}, 13, DType::bf16), kGpu);
  const std::vector<float> first =
      to(cast(matmul(x, x), DType::f32), Device::cpu()).to_vector<float>();
  const std::string lines = kernels::gemm_choices().text();
  EXPECT_NE(lines.find("m512 n512 k512"), std::string::npos) << lines;
  kernels::gemm_choices().pin(lines);
  EXPECT_EQ(kernels::gemm_choices().text(), lines);
  EXPECT_EQ(to(cast(matmul(x, x), DType::f32), Device::cpu()).to_vector<float>(), first);
  EXPECT_NE(kernels::gemm_choices().used_text().find("m512 n512 k512"), std::string::npos);
}

}  // namespace
}  // namespace brrr
