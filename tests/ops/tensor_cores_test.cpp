// Which products and attentions run on tensor cores, by dtypes, sizes and layouts.
#include "brrr/kernels/calls/tensor_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace brrr {
namespace {

using testing::HasSubstr;

constexpr kernels::GpuGeneration kHopper{9, 0}, kAda{8, 9}, kAmpere{8, 0}, kVolta{7, 0};

Layout rows(int64_t m, int64_t k) { return contiguous_layout({m, k}); }
Layout columns(int64_t m, int64_t k) { return {{m, k}, {1, m}, 0}; }

kernels::ProductOperands product(DType dtype, int64_t m, int64_t n, int64_t k) {
  return {
      .a = rows(m, k), .b = columns(k, n), .a_dtype = dtype, .b_dtype = dtype, .c_dtype = dtype};
}

TEST(TensorCores, TakeSixteenBits) {
  for (DType dtype : {DType::bf16, DType::f16}) {
    const kernels::TensorCoreUse use =
        kernels::product_tensor_cores(product(dtype, 64, 128, 256), kHopper);
    EXPECT_EQ(use.how, kernels::TensorCores::full);
    EXPECT_EQ(use.mark(), to_text(dtype));
    EXPECT_EQ(use.reason, "");
  }
  EXPECT_EQ(kernels::product_tensor_cores(product(DType::f16, 64, 64, 64), kVolta).mark(), "f16");
  const kernels::TensorCoreUse early =
      kernels::product_tensor_cores(product(DType::bf16, 64, 64, 64), kVolta);
  EXPECT_EQ(early.mark(), "no");
  EXPECT_THAT(early.reason, HasSubstr("from compute capability 8.0 on, this is 7.0"));
}

TEST(TensorCores, LeaveF32AloneUnlessItIsTf32) {
  kernels::ProductOperands f32 = product(DType::f32, 64, 64, 64);
  const kernels::TensorCoreUse ieee = kernels::product_tensor_cores(f32, kHopper);
  EXPECT_EQ(ieee.how, kernels::TensorCores::none);
  EXPECT_THAT(ieee.reason, HasSubstr("--matmul-precision tf32"));
  f32.tf32 = true;
  EXPECT_EQ(kernels::product_tensor_cores(f32, kHopper).mark(), "tf32");
}

TEST(TensorCores, AreSlowerWhereRowsBeginAtOddAddresses) {
  // The head of GPT-2 with its own vocabulary: logits have rows of 50257.
  const kernels::TensorCoreUse head =
      kernels::product_tensor_cores(product(DType::bf16, 1024, 50257, 768), kHopper);
  EXPECT_EQ(head.mark(), "bf16, slower");
  EXPECT_THAT(head.reason, HasSubstr("rows of the result are 50257 elements apart"));
  EXPECT_THAT(head.reason, HasSubstr("no multiple of 8 (16 bytes)"));
  const kernels::TensorCoreUse sums =
      kernels::product_tensor_cores(product(DType::bf16, 64, 64, 100), kHopper);
  EXPECT_THAT(sums.reason, HasSubstr("rows of the first factor are 100 elements apart"));
  EXPECT_EQ(kernels::product_tensor_cores(product(DType::bf16, 3, 64, 64), kHopper).mark(), "bf16")
      << "how many rows there are is no matter";
  // Sums of f32 have rows of four.
  kernels::ProductOperands gradient = product(DType::bf16, 8, 12, 8);
  gradient.b = rows(8, 12);
  gradient.c_dtype = DType::f32;
  EXPECT_THAT(kernels::product_tensor_cores(gradient, kHopper).reason,
              HasSubstr("second factor are 12"));
}

TEST(TensorCores, TakeEightBitsAlongKInSixteens) {
  EXPECT_EQ(kernels::product_tensor_cores(product(DType::f8e4m3, 32, 48, 64), kHopper).mark(),
            "fp8");
  EXPECT_EQ(kernels::product_tensor_cores(product(DType::f8e4m3, 32, 48, 64), kAda).mark(), "fp8");
  EXPECT_EQ(kernels::f8_refusal(product(DType::f8e4m3, 32, 48, 64)), "");
  const auto reason = [](const kernels::ProductOperands& p) {
    const kernels::TensorCoreUse use = kernels::product_tensor_cores(p, kHopper);
    EXPECT_EQ(use.mark(), "bf16, slower") << "f8 widens to bf16 without loss";
    return use.reason;
  };
  EXPECT_THAT(reason(product(DType::f8e4m3, 32, 40, 64)),
              HasSubstr("sizes m 32, n 40, k 64 are not all multiples of 16"));
  EXPECT_THAT(reason(product(DType::f8e5m2, 32, 48, 64)), HasSubstr("both factors are e5m2"));
  kernels::ProductOperands gradient = product(DType::f8e5m2, 32, 48, 64);
  gradient.b_dtype = DType::f8e4m3;
  EXPECT_EQ(kernels::product_tensor_cores(gradient, kHopper).mark(), "fp8");
  gradient.b = rows(64, 48);
  EXPECT_THAT(reason(gradient), HasSubstr("does not lie along k"));
  kernels::ProductOperands mixed = product(DType::f8e4m3, 32, 48, 64);
  mixed.b_dtype = DType::bf16;
  EXPECT_THAT(reason(mixed), HasSubstr("one factor has 8 bits"));
  EXPECT_THAT(kernels::product_tensor_cores(product(DType::f8e4m3, 32, 48, 64), kAmpere).reason,
              HasSubstr("from compute capability 8.9 on"));
}

TEST(TensorCores, HaveNoIntegersAndNoMixtures) {
  const kernels::TensorCoreUse integers =
      kernels::product_tensor_cores(product(DType::i64, 16, 16, 16), kHopper);
  EXPECT_EQ(integers.mark(), "no");
  EXPECT_THAT(integers.reason, HasSubstr("plain kernel: the library has no i64"));
  kernels::ProductOperands mixed = product(DType::bf16, 16, 16, 16);
  mixed.b_dtype = DType::f32;
  EXPECT_THAT(kernels::product_tensor_cores(mixed, kHopper).reason,
              HasSubstr("plain kernel: factors are bf16 and f32"));
  EXPECT_EQ(kernels::product_tensor_cores(product(DType::f64, 16, 16, 16), kHopper).mark(), "f64");
  EXPECT_EQ(kernels::product_tensor_cores(product(DType::f64, 16, 16, 16), kAda).mark(), "no");
}

kernels::AttentionOperands heads(DType dtype, int64_t size) {
  const int64_t row = 3 * 4 * size;
  const Layout part{{2, 4, 16, size}, {16 * row, size, row, 1}, 0};
  return {.q = part, .k = part, .v = part, .dtype = dtype};
}

TEST(TensorCores, AttendToHeadsOfWholeChunks) {
  for (int64_t size = 8; size <= 256; size += 8) {
    EXPECT_EQ(kernels::attention_tensor_cores(heads(DType::bf16, size)).mark(), "bf16") << size;
    EXPECT_EQ(kernels::attention_tensor_cores(heads(DType::f16, size)).mark(), "f16") << size;
  }
  const auto reason = [](const kernels::AttentionOperands& h) {
    EXPECT_EQ(kernels::attention_tensor_cores(h).mark(), "no");
    return kernels::attention_tensor_cores(h).reason;
  };
  for (int64_t size : {4, 20, 84, 100, 260})
    EXPECT_THAT(reason(heads(DType::bf16, size)),
                HasSubstr("heads of " + std::to_string(size) + "; kernels take multiples of 8"));
  EXPECT_THAT(reason(heads(DType::bf16, 264)), HasSubstr("up to 256"));
  EXPECT_THAT(reason(heads(DType::f32, 64)), HasSubstr("not f32"));
  kernels::AttentionOperands odd = heads(DType::f16, 64);
  odd.k.offset = 4;
  EXPECT_THAT(reason(odd), HasSubstr("whole chunks of 16 bytes"));
  kernels::AttentionOperands negative = heads(DType::f16, 64);
  negative.scale = -1;
  EXPECT_THAT(reason(negative), HasSubstr("not positive"));
  kernels::AttentionOperands latent = heads(DType::f16, 64);
  latent.v.shape[3] = 32;
  EXPECT_THAT(reason(latent), HasSubstr("queries have 64 numbers and values 32"));
}

// The narrowest kernel that holds the head: a wider one would multiply zeros.
TEST(TensorCores, HeadsHaveAKernelOfTheirWidth) {
  for (int64_t size = -8; size <= 600; ++size) {
    int expected = 0;
    for (int width : {256, 192, 128, 96, 64, 32}) {
      if (size > 0 && size % 8 == 0 && size <= width) expected = width;
    }
    EXPECT_EQ(kernels::attention_kernel_width(size), expected) << size;
  }
}

}  // namespace
}  // namespace brrr
