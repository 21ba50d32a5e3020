// Bounds on inference: the numbers of the lecture on it, and caches of published models.
#include "brrr/plan/inference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace brrr {
namespace {

// Llama-2-13B as the lecture has it: norms are not counted and every parameter is read for a token.
struct LectureRow {
  int64_t batch;
  double gigabytes, milliseconds, tokens_per_second;
};

plan::InferAnswer lecture(int64_t batch, int64_t kv_heads) {
  LlamaConfig config = llama_preset("llama2-13b");
  config.kv_heads = kv_heads;
  plan::InferQuestion q{.model = config, .gpu = "h100"};
  q.batch = batch;
  q.context = 1024;
  q.whole_table = true;
  return plan::answer(q);
}

TEST(Inference, Llama13BOnAnH100IsTheLecturesTable) {
  for (const LectureRow& row :
       {LectureRow{1, 26.87, 8.02, 124.7}, LectureRow{64, 79.72, 23.80, 2689},
        LectureRow{256, 240.8, 71.87, 3562}}) {
    const plan::InferAnswer a = lecture(row.batch, 0);
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
    const plan::InferAnswer a = lecture(row.batch, 8);
    EXPECT_NEAR(a.memory_bytes / 1e9, row.gigabytes, 0.05);
    EXPECT_NEAR(a.decode_seconds * 1e3, row.milliseconds, 0.005 + 1e-3 * row.milliseconds);
    EXPECT_NEAR(a.tokens_per_second, row.tokens_per_second, 1e-3 * row.tokens_per_second);
    EXPECT_TRUE(a.fits);
  }
}

TEST(Inference, CachesOfPublishedModels) {
  EXPECT_EQ(2 * plan::kv_elements_per_token(model_preset("llama3-8b")), 131'072);
  EXPECT_EQ(2 * plan::kv_elements_per_token(model_preset("llama3-70b")), 327'680);
  EXPECT_EQ(2 * plan::kv_elements_per_token(model_preset("llama2-13b")), 819'200);
  EXPECT_EQ(2 * plan::kv_elements_per_token(model_preset("deepseek-v3")), 70'272);
}

TEST(Inference, AMixtureKeepsAllExpertsAndTouchesSome) {
  plan::InferQuestion q{.model = model_preset("mixtral-8x7b"), .gpu = "h100"};
  q.count = 2;
  const plan::InferAnswer one = plan::answer(q);
  q.batch = 64;
  const plan::InferAnswer many = plan::answer(q);
  EXPECT_EQ(one.weight_bytes, 2.0 * 46'702'792'704);
  EXPECT_LT(one.touched_bytes, 0.3 * one.weight_bytes);
  EXPECT_GT(many.touched_bytes, 0.95 * many.weight_bytes - 2 * 32000.0 * 4096);
}

TEST(Inference, TheBoundOfLlama7BOnAnA100Is154Tokens) {
  plan::InferQuestion q{.model = model_preset("llama2-7b"), .gpu = "a100-80"};
  q.context = 1;
  EXPECT_NEAR(plan::answer(q).tokens_per_second, 154.3, 0.2);
}

// Mistral 7B at 32,768 tokens keeps a window of 4,096: 131,072 B each are 0.537 GB, and with 14.22 GB of weights
// 4.405 ms at 3.35 TB/s. The arithmetic of a token is that of the window, too.
TEST(Inference, AWindowIsAllThatIsKept) {
  LlamaConfig config{.vocab = 32000, .context = 32768, .kv_heads = 8, .hidden = 14336};
  plan::InferQuestion q{.model = config, .gpu = "h100"};
  q.context = 32768;
  const plan::InferAnswer whole = plan::answer(q);
  config.window = 4096;
  q.model = config;
  const plan::InferAnswer window = plan::answer(q);
  EXPECT_EQ(whole.cached_tokens, 32768);
  EXPECT_EQ(whole.kv_bytes, 131'072.0 * 32768);
  EXPECT_EQ(window.cached_tokens, 4096);
  EXPECT_EQ(window.kv_bytes, 131'072.0 * 4096);
  EXPECT_NEAR(1e3 * window.decode_seconds, 4.405, 5e-4);
  EXPECT_NEAR(window.tokens_per_second, 227.0, 0.05);
  EXPECT_EQ(window.largest_batch, 122) << "(80 - 14.48) / 0.537";
  const double saved = 4.0 * 32 * 4096 * (32768 - 4096) / 989.5e12;
  EXPECT_NEAR(whole.decode_compute_seconds - window.decode_compute_seconds, saved, 1e-9 * saved);
  q.context = 1024;
  EXPECT_EQ(plan::answer(q).cached_tokens, 1024) << "shorter than the window";
}

// 8 key heads are shared out over 8 devices at most: 16 hold each head twice, and read as much as 8 did.
TEST(Inference, KeyHeadsThatAreCopiedAreHeldAndRead) {
  plan::InferQuestion q{.model = model_preset("llama3-70b"), .gpu = "h100"};
  q.batch = 16, q.context = 8192;
  const double caches = 327'680.0 * 8192 * 16;
  for (const int64_t count : {4, 8, 16, 64}) {
    q.count = count;
    const plan::InferAnswer a = plan::answer(q);
    const auto n = static_cast<double>(count), shared = std::min(8.0, n);
    EXPECT_EQ(a.kv_bytes, caches);
    EXPECT_EQ(a.kv_devices, std::min<int64_t>(8, count));
    EXPECT_EQ(a.kv_device_bytes, caches / shared);
    EXPECT_EQ(a.memory_bytes, a.weight_bytes + caches / shared * n);
    EXPECT_EQ(a.largest_batch,
              std::floor((80e9 * n - a.weight_bytes) / (327'680.0 * 8192 / shared * n)));
    EXPECT_NEAR(a.decode_bandwidth_seconds, (a.touched_bytes / n + caches / shared) / 3.35e12,
                1e-12);
  }
}

// Every device of DeepSeek-V3 has the one vector that all heads read.
TEST(Inference, LatentCachesAreOnEveryDevice) {
  plan::InferQuestion q{.model = model_preset("deepseek-v3"), .gpu = "h200"};
  q.count = 8, q.batch = 32, q.context = 4096;
  const plan::InferAnswer a = plan::answer(q);
  EXPECT_EQ(a.kv_devices, 1);
  EXPECT_EQ(a.kv_device_bytes, 70'272.0 * 4096 * 32);
}

// Products of 8-bit weights may run at twice the rate where the device has it; attention is the cache's.
TEST(Inference, PrefillIsBoundByThePeakOfTheFormats) {
  plan::InferQuestion q{.model = model_preset("llama3-8b"), .gpu = "h100"};
  q.context = 8192;
  const plan::InferAnswer half = plan::answer(q);
  const double products = 8192 * 2 * (8'030'261'248.0 - 128256 * 4096 - 65 * 4096),
               attention = 4.0 * 32 * 4096 * 8192 * 8193 / 2;
  EXPECT_NEAR(half.prefill_seconds, (products + attention) / 989.5e12, 1e-9);
  q.products = plan::product_arithmetic("fp8");
  const plan::InferAnswer low = plan::answer(q);
  EXPECT_EQ(low.products, hardware::Arithmetic::fp8);
  EXPECT_EQ(low.attention, hardware::Arithmetic::bf16);
  EXPECT_NEAR(low.prefill_seconds, products / 1979e12 + attention / 989.5e12, 1e-9);
  q.attention = plan::product_arithmetic("fp8");
  EXPECT_NEAR(plan::answer(q).prefill_seconds, (products + attention) / 1979e12, 1e-9);
  q.gpu = "a100";
  EXPECT_EQ(plan::answer(q).products, hardware::Arithmetic::bf16) << "an A100 has no fp8";
  EXPECT_NEAR(plan::answer(q).prefill_seconds, (products + attention) / 312e12, 1e-9);
  EXPECT_EQ(plan::product_arithmetic("int8"), hardware::Arithmetic::int8);
  EXPECT_EQ(plan::product_arithmetic("int4"), hardware::Arithmetic::bf16);
}

}  // namespace
}  // namespace brrr
