// Bounds on inference: the numbers of the lecture on it, and caches of published models.
#include "brrr/napkin/inference.h"

#include <gtest/gtest.h>

#include "brrr/napkin/op_cost.h"

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
