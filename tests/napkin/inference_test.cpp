// Bounds on inference: the numbers of the lecture on it, and caches of published models.
#include "brrr/napkin/inference.h"

#include <gtest/gtest.h>

#include "brrr/graph/call.h"
#include "brrr/napkin/op_cost.h"
#include "brrr/ops/binary.h"
#include "brrr/ops/reduce.h"
#include "brrr/ops/unary.h"

namespace brrr {
namespace {

// Llama-2-13B as the lecture has it: norms are not counted and every parameter is read for a token.
struct LectureRow {
  int64_t batch;
  double gigabytes, milliseconds, tokens_per_second;
};

InferAnswer lecture(int64_t batch, int64_t kv_heads) {
  LlamaConfig config = llama_preset("llama2-13b");
  config.kv_heads = kv_heads;
  InferQuestion q{.model = config, .gpu = "h100"};
  q.batch = batch;
  q.context = 1024;
  q.whole_table = true;
  return answer(q);
}

TEST(Inference, Llama13BOnAnH100IsTheLecturesTable) {
  for (const LectureRow& row :
       {LectureRow{1, 26.87, 8.02, 124.7}, LectureRow{64, 79.72, 23.80, 2689},
        LectureRow{256, 240.8, 71.87, 3562}}) {
    const InferAnswer a = lecture(row.batch, 0);
    EXPECT_EQ(a.kv_bytes_per_sequence, 838'860'800);
    EXPECT_NEAR(a.memory_bytes / 1e9, row.gigabytes, 0.05);
    EXPECT_NEAR(a.decode_seconds * 1e3, row.milliseconds, 0.005 + 1e-3 * row.milliseconds);
    EXPECT_NEAR(a.tokens_per_second, row.tokens_per_second, 1e-3 * row.tokens_per_second);
  }
  EXPECT_FALSE(lecture(256, 0).fits);
  // The lecture leaves out norms: 13,015,449,600 of 13,015,864,320.
  EXPECT_EQ(lecture(1, 0).params - 81 * 5120, 13'015'449'600.0);
}

TEST(Inference, EightKeyHeadsAreTheLecturesSecondTable) {
  EXPECT_EQ(lecture(1, 8).params - 81 * 5120, 11'337'728'000.0);
  for (const LectureRow& row :
       {LectureRow{64, 33.41, 9.97, 6417}, LectureRow{256, 65.63, 19.59, 13068}}) {
    const InferAnswer a = lecture(row.batch, 8);
    EXPECT_NEAR(a.memory_bytes / 1e9, row.gigabytes, 0.05);
    EXPECT_NEAR(a.decode_seconds * 1e3, row.milliseconds, 0.005 + 1e-3 * row.milliseconds);
    EXPECT_NEAR(a.tokens_per_second, row.tokens_per_second, 1e-3 * row.tokens_per_second);
    EXPECT_TRUE(a.fits);
  }
}

TEST(Inference, CachesOfPublishedModels) {
  EXPECT_EQ(2 * kv_elements_per_token(model_preset("llama3-8b")), 131'072);
  EXPECT_EQ(2 * kv_elements_per_token(model_preset("llama3-70b")), 327'680);
  EXPECT_EQ(2 * kv_elements_per_token(model_preset("llama2-13b")), 819'200);
  EXPECT_EQ(2 * kv_elements_per_token(model_preset("deepseek-v3")), 70'272);
}

TEST(Inference, AMixtureKeepsAllExpertsAndTouchesSome) {
  InferQuestion q{.model = model_preset("mixtral-8x7b"), .gpu = "h100"};
  q.count = 2;
  const InferAnswer one = answer(q);
  q.batch = 64;
  const InferAnswer many = answer(q);
  EXPECT_EQ(one.weight_bytes, 2.0 * 46'702'792'704);
  EXPECT_LT(one.touched_bytes, 0.3 * one.weight_bytes);
  EXPECT_GT(many.touched_bytes, 0.95 * many.weight_bytes - 2 * 32000.0 * 4096);
}

TEST(Inference, TheBoundOfLlama7BOnAnA100Is154Tokens) {
  InferQuestion q{.model = model_preset("llama2-7b"), .gpu = "a100-80"};
  q.context = 1;
  EXPECT_NEAR(answer(q).tokens_per_second, 154.3, 0.2);
}

TEST(OpCost, ProductsAndAttentionAreTheFormulas) {
  const GpuSpec& h100 = find_gpu("h100");
  const int64_t sizes[] = {512, 4096, 1024};
  const OpAnswer product = op_answer("matmul", sizes, DType::bf16, h100);
  EXPECT_EQ(product.flops, 2.0 * 512 * 4096 * 1024);
  EXPECT_EQ(product.bytes, 2.0 * (512 * 1024 + 1024 * 4096 + 512 * 4096));
  EXPECT_NEAR(product.ridge, 295, 1);
  const int64_t rows[] = {1, 8192, 8192};
  EXPECT_NEAR(op_answer("matmul", rows, DType::bf16, h100).intensity, 1, 1e-3)
      << "intensity goes to B";
  EXPECT_EQ(op_answer("matmul", rows, DType::bf16, h100).regime, "memory");
  // A square bf16 product has an intensity of n / 3.
  const int64_t square[] = {3000, 3000, 3000};
  EXPECT_NEAR(op_answer("matmul", square, DType::bf16, h100).intensity, 1000, 1e-6);
}

// Y = (silu(X Wg) * (X Wu)) Wd with B T rows: 6 B T D F FLOPs; the lecture reads X once and the product of the two
// halves once, so 4 B T D + 4 B T F + 6 D F bytes.
TEST(OpCost, AGatedNetworkIsTheLecturesSum) {
  const GpuSpec& h100 = find_gpu("h100");
  const double rows = 512, d = 1024, f = 4096;
  const int64_t up[] = {512, 4096, 1024}, down[] = {512, 1024, 4096};
  const OpAnswer first = op_answer("matmul", up, DType::bf16, h100),
                 last = op_answer("matmul", down, DType::bf16, h100);
  EXPECT_EQ(2 * first.flops + last.flops, 6 * rows * d * f);
  EXPECT_EQ(2 * first.bytes + last.bytes - 2 * rows * d - 2 * rows * f,
            4 * rows * d + 4 * rows * f + 6 * d * f);
}

// One query against T keys: 4 B S T D FLOPs, 4 B S D + 4 B T D bytes (and an f32 a query and head): below 1 FLOP/B.
TEST(OpCost, DecodingAttentionHasAnIntensityBelowOne) {
  const GpuSpec& h100 = find_gpu("h100");
  const double b = 8, heads = 16, dim = 128, keys = 1024;
  const int64_t decode[] = {8, 16, 1, 128, 1024};
  const OpAnswer one = op_answer("attention", decode, DType::bf16, h100);
  EXPECT_EQ(one.flops, 4 * b * keys * heads * dim);
  EXPECT_EQ(one.bytes - 4 * b * heads, 4 * b * heads * dim + 4 * b * keys * heads * dim);
  EXPECT_LT(one.intensity, 1);
  // A causal prompt of S has half the pairs of the square: S / 4 instead of the lecture's S / 2.
  const int64_t prefill[] = {8, 16, 1024, 128};
  EXPECT_NEAR(op_answer("attention", prefill, DType::bf16, h100).intensity, 1024 / 4.0, 5);
}

// Five ops one by one read 5 M N + 2 M and write 3 M N + 2 M elements; the fused op reads and writes M N.
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
  const OpAnswer fused = op_answer("softmax", sizes, DType::f32, find_gpu("a100"));
  EXPECT_EQ(fused.bytes, 8.0 * m * n);
  EXPECT_NEAR(moved / fused.bytes, 4, 0.01);
}

TEST(OpCost, ASquareOfBlocksLoadsLessThanARow) {
  EXPECT_EQ(block_loads(1, 9, 9), 90);
  EXPECT_EQ(block_loads(3, 3, 9), 54);
  EXPECT_EQ(find_gpu("a100").multiprocessors, 108);
}

TEST(OpCost, AdamwAndCopyMoveWhatTheyMove) {
  const GpuSpec& a100 = find_gpu("a100");
  const int64_t count[] = {1000};
  EXPECT_EQ(op_answer("adamw", count, DType::f32, a100).bytes, 28'000);
  EXPECT_EQ(op_answer("copy", count, DType::bf16, a100).bytes, 4'000);
  EXPECT_EQ(op_answer("gelu", count, DType::bf16, a100).bytes, 4'000);
  EXPECT_EQ(op_answer("gelu", count, DType::bf16, a100).regime, "memory");
}

TEST(OpCost, TilesAndWavesLeavePartOfADeviceIdle) {
  const GpuSpec& a100 = find_gpu("a100");
  // 108 multiprocessors, tiles of 128 x 128: 109 tiles take two waves.
  const Quantisation full = quantise(108 * 128, 128, a100),
                     one_more = quantise(109 * 128, 128, a100);
  EXPECT_EQ(full.waves, 1);
  EXPECT_DOUBLE_EQ(full.efficiency, 1);
  EXPECT_EQ(one_more.waves, 2);
  EXPECT_NEAR(one_more.efficiency, 109.0 / 216, 1e-12);
}

}  // namespace
}  // namespace brrr
