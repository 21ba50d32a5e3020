// One op on a roofline: the sums of the lectures on inference and kernels.
#include "brrr/plan/op_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/graph/call.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/reduce/reduce.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::HasSubstr;

TEST(OpCost, ProductsAndAttentionAreTheFormulas) {
  const hardware::GpuSpec& h100 = hardware::find_gpu("h100");
  const int64_t sizes[] = {512, 4096, 1024};
  const plan::OpAnswer product = plan::op_answer("matmul", sizes, DType::bf16, h100);
  EXPECT_EQ(product.flops, 2.0 * 512 * 4096 * 1024);
  EXPECT_EQ(product.bytes, 2.0 * (512 * 1024 + 1024 * 4096 + 512 * 4096));
  EXPECT_NEAR(product.ridge, 295, 1);
  const int64_t rows[] = {1, 8192, 8192};
  EXPECT_NEAR(plan::op_answer("matmul", rows, DType::bf16, h100).intensity, 1, 1e-3)
      << "intensity goes to B";
  EXPECT_EQ(plan::op_answer("matmul", rows, DType::bf16, h100).regime, "memory");
  // A square bf16 product has an intensity of n / 3.
  const int64_t square[] = {3000, 3000, 3000};
  EXPECT_NEAR(plan::op_answer("matmul", square, DType::bf16, h100).intensity, 1000, 1e-6);
}

// Y = (silu(X Wg) * (X Wu)) Wd with B T rows: 6 B T D F FLOPs; the lecture reads X once and the product of the two
// halves once, so 4 B T D + 4 B T F + 6 D F bytes.
TEST(OpCost, AGatedNetworkIsTheLecturesSum) {
  const hardware::GpuSpec& h100 = hardware::find_gpu("h100");
  const double rows = 512, d = 1024, f = 4096;
  const int64_t up[] = {512, 4096, 1024}, down[] = {512, 1024, 4096};
  const plan::OpAnswer first = plan::op_answer("matmul", up, DType::bf16, h100),
                       last = plan::op_answer("matmul", down, DType::bf16, h100);
  EXPECT_EQ(2 * first.flops + last.flops, 6 * rows * d * f);
  EXPECT_EQ(2 * first.bytes + last.bytes - 2 * rows * d - 2 * rows * f,
            4 * rows * d + 4 * rows * f + 6 * d * f);
  const int64_t sizes[] = {512, 1024, 4096};
  const plan::OpAnswer network = plan::op_answer("swiglu", sizes, DType::bf16, h100);
  EXPECT_EQ(network.flops, 6 * rows * d * f);
  EXPECT_EQ(network.bytes, 4 * rows * d + 4 * rows * f + 6 * d * f);
  EXPECT_EQ(network.arithmetic, "bf16") << "on matrix units";
}

// One query against T keys: 4 B S T D FLOPs, 4 B S D + 4 B T D bytes: below 1 FLOP/B.
TEST(OpCost, DecodingAttentionHasAnIntensityBelowOne) {
  const hardware::GpuSpec& h100 = hardware::find_gpu("h100");
  const double b = 8, heads = 16, dim = 128, keys = 1024;
  const int64_t decode[] = {8, 16, 1, 128, 1024};
  const plan::OpAnswer one = plan::op_answer("attention", decode, DType::bf16, h100);
  EXPECT_EQ(one.flops, 4 * b * keys * heads * dim);
  EXPECT_EQ(one.bytes, 4 * b * heads * dim + 4 * b * keys * heads * dim);
  EXPECT_DOUBLE_EQ(one.intensity, keys / (1 + keys)) << "S T / (S + T)";
  EXPECT_LT(one.intensity, 1);
}

// A prompt has S / 2 over the whole square, as the lecture counts, and half of it under a causal mask; the answer says
// which.
TEST(OpCost, AttentionCountsWhatItSays) {
  const hardware::GpuSpec& h100 = hardware::find_gpu("h100");
  const double heads = 32, dim = 128, seq = 1024;
  const int64_t prompt[] = {1, 32, 1024, 128};
  const plan::OpAnswer full =
      plan::op_answer("attention", prompt, DType::bf16, h100, {.full_square = true});
  EXPECT_EQ(full.flops, 4 * heads * seq * seq * dim);
  EXPECT_EQ(full.bytes, 8 * heads * seq * dim);
  EXPECT_DOUBLE_EQ(full.intensity, seq / 2);
  EXPECT_THAT(full.flops_how, HasSubstr("every query sees every key"));
  const plan::OpAnswer causal = plan::op_answer("attention", prompt, DType::bf16, h100);
  EXPECT_EQ(causal.flops, 4 * heads * dim * seq * (seq + 1) / 2);
  EXPECT_DOUBLE_EQ(causal.intensity, (seq + 1) / 4);
  EXPECT_THAT(causal.flops_how, HasSubstr("causal mask"));
  const int64_t elements[] = {1000};
  EXPECT_THAT(error_of([&] {
                plan::op_answer("gelu", elements, DType::bf16, h100, {.full_square = true});
              }),
              HasSubstr("--full"));
}

// The lecture's naive softmax reads 5 M N + M and writes 3 M N + 2 M elements; the fused op reads and writes M N. Ours one
// by one read M more, since the quotient reads its sums.
TEST(OpCost, SoftmaxInPiecesMovesFourTimesAsMuch) {
  const int64_t m = 64, n = 4096;
  const Tensor x = empty({m, n}, DType::f32, Device::null());
  NoGrad forward_only;
  CostCounter pieces;
  const Tensor e = exp(x - max(x, {1}, KeepDims::yes));
  e / sum(e, {1}, KeepDims::yes);
  EXPECT_EQ(pieces.total().bytes_read, 4 * (5 * m * n + 2 * m));
  EXPECT_EQ(pieces.total().bytes_written, 4 * (3 * m * n + 2 * m));
  const auto moved = static_cast<double>(pieces.total().bytes_read + pieces.total().bytes_written);
  const int64_t sizes[] = {m, n};
  const plan::OpAnswer fused =
      plan::op_answer("softmax", sizes, DType::f32, hardware::find_gpu("a100"));
  EXPECT_EQ(fused.bytes, 8.0 * m * n);
  EXPECT_EQ(fused.naive_bytes, 4.0 * ((5 * m * n + m) + (3 * m * n + 2 * m)));
  EXPECT_EQ(moved - fused.naive_bytes, 4.0 * m);
  EXPECT_NEAR(fused.naive_bytes / fused.bytes, 4, 0.01);
}

TEST(OpCost, ASquareOfBlocksLoadsLessThanARow) {
  EXPECT_EQ(plan::block_loads(1, 9, 9), 90);
  EXPECT_EQ(plan::block_loads(3, 3, 9), 54);
}

// 108 multiprocessors, 40 MB of L2 and 192 KB of L1 each; four blocks for every multiprocessor.
TEST(OpCost, AnA100WantsFourBlocksAMultiprocessor) {
  const hardware::GpuSpec& a100 = hardware::find_gpu("a100");
  EXPECT_EQ(a100.multiprocessors, 108);
  EXPECT_EQ(a100.l2, Bytes(40 << 20));
  EXPECT_EQ(a100.l1, Bytes(192 << 10));
  EXPECT_EQ(plan::enough_blocks(a100), 432);
  EXPECT_EQ(plan::enough_blocks(hardware::find_gpu("tpu-v4")), 0) << "not known";
}

TEST(OpCost, AdamwAndCopyMoveWhatTheyMove) {
  const hardware::GpuSpec& a100 = hardware::find_gpu("a100");
  const int64_t count[] = {1000};
  EXPECT_EQ(plan::op_answer("adamw", count, DType::f32, a100).bytes, 28'000);
  EXPECT_EQ(plan::op_answer("copy", count, DType::bf16, a100).bytes, 4'000);
  EXPECT_EQ(plan::op_answer("gelu", count, DType::bf16, a100).bytes, 4'000);
  EXPECT_EQ(plan::op_answer("gelu", count, DType::bf16, a100).regime, "memory");
}

TEST(OpCost, TilesAndWavesLeavePartOfADeviceIdle) {
  const hardware::GpuSpec& a100 = hardware::find_gpu("a100");
  // 108 multiprocessors, tiles of 128 x 128: 109 tiles take two waves.
  const plan::Quantisation full = plan::quantise(108 * 128, 128, a100),
                           one_more = plan::quantise(109 * 128, 128, a100);
  EXPECT_EQ(full.waves, 1);
  EXPECT_DOUBLE_EQ(full.efficiency, 1);
  EXPECT_EQ(one_more.waves, 2);
  EXPECT_NEAR(one_more.efficiency, 109.0 / 216, 1e-12);
}

}  // namespace
}  // namespace brrr
